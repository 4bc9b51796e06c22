import { canonicalJson, isJsonArray, isJsonObject, type JsonValue } from "../../json/canonical-json.ts";

/** The way to a value inside another: members by name, elements by index. */
export type Keys = readonly (string | number)[];

/** One attribute in which two values differ; `undefined` on the side that has none. */
export interface AttributeDifference {
  /** `spec.replicas`, `containers[0].image`, `labels["app.kubernetes.io/name"]`; empty when the whole differs. */
  readonly path: string;
  /** The same, to be walked. */
  readonly keys: Keys;
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

/** The attributes in which two JSON values differ, down to the deepest member that both have a place for. */
export function attributeDifferences(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  keys: Keys = [],
): AttributeDifference[] {
  if (isJsonObject(before) && isJsonObject(after)) {
    const members = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...members].sort().flatMap((key) => attributeDifferences(before[key], after[key], [...keys, key]));
  }
  if (isJsonArray(before) && isJsonArray(after)) {
    const indices = Array.from({ length: Math.max(before.length, after.length) }, (_, index) => index);
    return indices.flatMap((index) => attributeDifferences(before[index], after[index], [...keys, index]));
  }
  return isSame(before, after) ? [] : [{ path: formatPath(keys), keys, before, after }];
}

/** What lies at a place of a masked value: where the mask begins further up, the mask. */
export function valueAt(value: JsonValue, keys: Keys): JsonValue {
  const [key, ...rest] = keys;
  if (key === undefined) return value;
  if (isJsonArray(value)) return valueAt(value[Number(key)] ?? null, rest);
  return isJsonObject(value) ? valueAt(value[key] ?? null, rest) : value;
}

function isSame(before: JsonValue | undefined, after: JsonValue | undefined): boolean {
  if (before === undefined || after === undefined) return before === after;
  return canonicalJson(before) === canonicalJson(after);
}

/** `containers[0].image` for the keys that lead there. */
export function formatPath(keys: Keys): string {
  return keys.reduce<string>((path, key) => {
    if (typeof key === "number") return `${path}[${key}]`;
    if (!/^[A-Za-z_][A-Za-z0-9_-]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
    return path === "" ? key : `${path}.${key}`;
  }, "");
}

const STEP = /^(?:\.?(?<name>[A-Za-z_][A-Za-z0-9_-]*)|\[(?<index>\d+)\]|\[(?<quoted>"(?:[^"\\]|\\.)*")\])/;

/** The keys of a path that `formatPath` made; undefined for any other text. */
export function parsePath(path: string): Keys | undefined {
  const keys: (string | number)[] = [];
  for (let rest = path; rest !== "";) {
    const step = STEP.exec(rest);
    const { name, index, quoted } = step?.groups ?? {};
    if (step === null) return undefined;
    if (quoted !== undefined) keys.push(unquoted(quoted));
    else keys.push(index === undefined ? (name ?? "") : Number(index));
    rest = rest.slice(step[0].length);
  }
  return formatPath(keys) === path ? keys : undefined;
}

function unquoted(text: string): string {
  const name: unknown = JSON.parse(text);
  return String(name);
}

/** What lies at a place; undefined where there is nothing. */
export function memberAt(value: JsonValue | undefined, keys: Keys): JsonValue | undefined {
  const [key, ...rest] = keys;
  if (key === undefined) return value;
  if (isJsonArray(value)) return typeof key === "number" ? memberAt(value[key], rest) : undefined;
  return isJsonObject(value) && Object.hasOwn(value, key) ? memberAt(value[key], rest) : undefined;
}

/** A value with another one at a place; undefined removes what is there, and the elements after it. */
export function withMember(
  value: JsonValue | undefined,
  keys: Keys,
  member: JsonValue | undefined,
): JsonValue | undefined {
  const [key, ...rest] = keys;
  if (key === undefined) return member;
  if (typeof key === "number") {
    const elements = isJsonArray(value) ? value : [];
    const element = withMember(elements[key], rest, member);
    return element === undefined
      ? elements.slice(0, key)
      : [...elements.slice(0, key), element, ...elements.slice(key + 1)];
  }
  const { [key]: before, ...others } = isJsonObject(value) ? value : {};
  const changed = withMember(before, rest, member);
  return changed === undefined ? others : { ...others, [key]: changed };
}
