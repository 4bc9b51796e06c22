/** Deeper than anybody writes by hand, and far from what a recursive function can't follow. */
export const MAX_JSON_DEPTH = 32;

const RESERVED = "__proto__";

/**
 * What keeps a value of any origin from being plain JSON of bounded depth; undefined when nothing does. A message's
 * Struct may hold numbers that JSON can't say.
 */
export function jsonProblem(value: unknown, depthLeft = MAX_JSON_DEPTH): string | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number") {
    return Number.isFinite(value) ? undefined : `holds ${value}, which is no number that JSON has`;
  }
  if (typeof value !== "object") return "holds something that JSON has no form for";
  if (depthLeft === 0) return `is nested more than ${MAX_JSON_DEPTH} deep`;
  if (!Array.isArray(value) && !isPlainObject(value)) return `holds a member called ${RESERVED}, which is not allowed`;
  return firstProblem(Object.values(value), depthLeft - 1);
}

function firstProblem(members: readonly unknown[], depthLeft: number): string | undefined {
  for (const member of members) {
    const problem = jsonProblem(member, depthLeft);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Whether all of it came through: JavaScript takes a member called `__proto__` for the object's prototype. */
export function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && !Object.hasOwn(value, RESERVED);
}
