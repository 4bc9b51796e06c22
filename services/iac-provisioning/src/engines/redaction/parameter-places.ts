import {
  canonicalJson,
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from "../../json/canonical-json.ts";
import { likeValue } from "../adoption-asks.ts";
import { formatPath, type Keys, memberAt } from "./attribute-path.ts";

/** An attribute as it is declared and as it is observed; undefined where there is nothing. */
export interface Drifted {
  readonly keys: Keys;
  /** Names in the resource's address that tell its instances apart. */
  readonly instance: readonly (string | number)[];
  readonly declared: JsonObject;
  readonly observed: JsonObject;
}

/** A place among the parameters that seems to be where an attribute's value comes from, and what it would have to be. */
export interface ParameterPlace {
  readonly place: Keys;
  readonly wanted: JsonValue | undefined;
}

export type Sought = ParameterPlace | { readonly problem: string };

/**
 * Finds the place among these parameters whose value is the declared one, or stands inside its text. A guess, by what
 * values there are: whoever uses it must plan with it.
 */
export function parameterPlace(parameters: JsonObject, names: readonly string[], drifted: Drifted): Sought {
  const places = names.flatMap((name) => [...placesIn(parameters[name], [name])]);
  const found = first([
    () => places.flatMap(({ place, value }) => equal(place, value, drifted)),
    () => places.flatMap(({ place, value }) => added(place, value, drifted)),
    () => places.flatMap(({ place, value }) => within(place, value, drifted)),
    () => unset(parameters, names, drifted),
  ]);
  const [best, ...others] = nearest(found, drifted);
  if (!best) return { problem: `${listed(names)} does not tell where it comes from` };
  if (others.length === 0) return best;
  return { problem: `it could come from ${[best, ...others].map(({ place }) => formatPath(place)).join(", ")}` };
}

interface Place {
  place: Keys;
  value: JsonValue;
}

function* placesIn(value: JsonValue | undefined, place: Keys): Generator<Place> {
  if (value === undefined) return;
  yield { place, value };
  if (isJsonArray(value)) for (const [index, each] of value.entries()) yield* placesIn(each, [...place, index]);
  else if (isJsonObject(value)) for (const [key, each] of Object.entries(value)) yield* placesIn(each, [...place, key]);
}

function equal(place: Keys, value: JsonValue, { keys, declared, observed }: Drifted): ParameterPlace[] {
  const before = memberAt(declared, keys);
  if (before === undefined || canonicalJson(before) !== canonicalJson(value)) return [];
  return [{ place, wanted: memberAt(observed, keys) }];
}

/** A member that nobody declared, in an object that a parameter holds. */
function added(place: Keys, value: JsonValue, { keys, declared, observed }: Drifted): ParameterPlace[] {
  const key = keys.at(-1);
  const holder = memberAt(declared, keys.slice(0, -1));
  if (key === undefined || holder === undefined || memberAt(declared, keys) !== undefined) return [];
  const isThere = canonicalJson(holder) === canonicalJson(value) && typeof value === "object";
  return isThere ? [{ place: [...place, key], wanted: memberAt(observed, keys) }] : [];
}

/** A value that is written into a text, or given another type on its way. */
function within(place: Keys, value: JsonValue, { keys, declared, observed }: Drifted): ParameterPlace[] {
  const [before, after, part] = [textOf(memberAt(declared, keys)), textOf(memberAt(observed, keys)), textOf(value)];
  if (before === undefined || after === undefined || part === undefined || part === "") return [];
  const start = before.indexOf(part);
  if (start < 0 || before.indexOf(part, start + 1) >= 0) return [];
  const [prefix, suffix] = [before.slice(0, start), before.slice(start + part.length)];
  if (!after.startsWith(prefix) || !after.endsWith(suffix) || after.length < prefix.length + suffix.length) return [];
  const wanted = likeValue(after.slice(prefix.length, after.length - suffix.length), value);
  return wanted === undefined ? [] : [{ place, wanted }];
}

/** One parameter that was left out, and an attribute that is nothing without it. */
function unset(
  parameters: JsonObject,
  names: readonly string[],
  { keys, declared, observed }: Drifted,
): ParameterPlace[] {
  const [name, another] = names;
  if (name === undefined || another !== undefined || Object.hasOwn(parameters, name)) return [];
  if ((memberAt(declared, keys) ?? null) !== null) return [];
  return [{ place: [name], wanted: memberAt(observed, keys) }];
}

/** Those whose way says most of what the attribute's, and the instance's, says; most often there is one. */
function nearest(places: readonly ParameterPlace[], { keys, instance }: Drifted): ParameterPlace[] {
  const said = new Set([...instance, ...keys].map(String));
  const nearness = ({ place }: ParameterPlace) => place.filter((key) => said.has(String(key))).length;
  const most = Math.max(...places.map(nearness));
  return places.filter((each) => nearness(each) === most);
}

function first(ways: readonly (() => ParameterPlace[])[]): ParameterPlace[] {
  for (const way of ways) {
    const found = way();
    if (found.length > 0) return found;
  }
  return [];
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? String(value)
    : undefined;
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? "no parameter" : `none of the parameters ${names.join(", ")}`;
}
