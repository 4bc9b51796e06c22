import { canonicalJson, type JsonObject, type JsonValue } from "../json/canonical-json.ts";
import { parameterField } from "../programs/parameter-bounds.ts";
import { isOfType, typeName } from "../programs/parameter-type.ts";
import type { ParameterDeclaration } from "../programs/program.ts";
import { formatPath, type Keys, memberAt, withMember } from "./redaction/attribute-path.ts";
import { SENSITIVE, UNKNOWN } from "./engine-event.ts";
import type { AdoptionRefusal, ObservedValue } from "./engine-adoption.ts";

/** What one observed value wants a parameter, or a part of one, to be. */
export interface AdoptionAsk {
  readonly value: ObservedValue;
  /** The parameter's name, and the way inside it. */
  readonly place: Keys;
  /** Undefined: it is to be left out. */
  readonly wanted: JsonValue | undefined;
}

export type Asked = AdoptionAsk | AdoptionRefusal;

/** Those that can be granted, and those that can't. */
export function sorted(asked: readonly Asked[]): { asks: AdoptionAsk[]; refused: AdoptionRefusal[] } {
  return {
    asks: asked.flatMap((each) => ("reason" in each ? [] : [each])),
    refused: asked.flatMap((each) => ("reason" in each ? [each] : [])),
  };
}

export function refusal({ address, attributePath }: ObservedValue, reason: string): AdoptionRefusal {
  return { address, attributePath, reason };
}

/** Why a value can't be adopted whatever the program says; undefined when it may be. */
export function whyNever({ attributePath, observed }: ObservedValue): string | undefined {
  if (attributePath === "") {
    return "a whole resource that is missing, or that nobody declared, has no value to adopt: revert it, or declare a specification whose program has, or hasn't, the resource";
  }
  const shown = canonicalJson(observed);
  if (shown.includes(SENSITIVE)) return "its value is sensitive and was not seen: declare it as a parameter yourself";
  return shown.includes(UNKNOWN) ? "its value isn't known" : undefined;
}

/** Asks that can't be granted together: two that want one place to be different, or a place and a part of it. */
export function contradictions(asks: readonly AdoptionAsk[]): AdoptionRefusal[] {
  const wanted = new Map<string, Set<string>>();
  for (const { place, wanted: value } of asks) {
    const said = wanted.get(formatPath(place)) ?? new Set();
    wanted.set(formatPath(place), said.add(value === undefined ? "" : canonicalJson(value)));
  }
  return asks.flatMap(({ value, place }) => {
    const name = formatPath(place);
    if ((wanted.get(name)?.size ?? 0) > 1)
      return [refusal(value, `other drift wants parameter ${name} to be different`)];
    const whole = place.map((_, length) => formatPath(place.slice(0, length))).find((part) => wanted.has(part));
    return whole === undefined ? [] : [refusal(value, `other drift wants all of parameter ${whole} to be different`)];
  });
}

/** The parameters as the asks want them. */
export function granted(parameters: JsonObject, asks: readonly AdoptionAsk[]): JsonObject {
  return asks.reduce<JsonObject>((so, { place, wanted }) => {
    const [name = "", ...keys] = place;
    const changed = withMember(so[name], keys, wanted);
    const { [name]: _before, ...others } = so;
    return changed === undefined ? others : { ...others, [name]: changed };
  }, parameters);
}

/** The parameters that are not as they were. */
export function changedParameters(before: JsonObject, after: JsonObject): JsonObject {
  const isSame = (name: string, value: JsonValue) =>
    Object.hasOwn(before, name) && canonicalJson(before[name] ?? null) === canonicalJson(value);
  return Object.fromEntries(Object.entries(after).filter(([name, value]) => !isSame(name, value)));
}

/** Asks that would give a parameter a value which the program doesn't take. */
export function misfits(
  declared: Readonly<Record<string, ParameterDeclaration>>,
  after: JsonObject,
  asks: readonly AdoptionAsk[],
): AdoptionRefusal[] {
  return asks.flatMap(({ value, place }) => {
    const name = String(place[0]);
    const declaration = declared[name];
    if (!declaration) return [refusal(value, `the program has no parameter ${name}`)];
    const wanted = memberAt(after, [name]);
    if (wanted === undefined) return [refusal(value, `it is not there, and ${parameterField(name)} can't be left out`)];
    if (isOfType(wanted, declaration.type)) return [];
    const reason = `${parameterField(name)} is of type ${declaration.type}, and ${typeName(wanted)} was observed`;
    return [refusal(value, reason)];
  });
}

/** A text as the type that a value has; undefined when it can't be. */
export function likeValue(text: string, value: JsonValue | undefined): JsonValue | undefined {
  if (typeof value === "number") return String(Number(text)) === text ? Number(text) : undefined;
  if (typeof value === "boolean") return text === "true" ? true : text === "false" ? false : undefined;
  return typeof value === "string" || value === undefined ? text : undefined;
}
