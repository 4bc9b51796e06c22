import { canonicalJson, isJsonArray, isJsonObject, type JsonValue } from "../programs/canonical-json.ts";

type Keys = readonly (string | number)[];

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
