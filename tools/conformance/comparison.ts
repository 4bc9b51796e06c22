/** What the catalogue has of one kind of thing, what was found of it, and where the two differ. */
export interface Comparison {
  /** For example `events`. */
  kind: string;
  expected: number;
  found: number;
  /** A line each, which names the thing, what it is, and what the catalogue says. */
  differences: readonly string[];
}

/** Expected and found things of the same key, and those that have no counterpart; a thing found twice is extra. */
export function match<Expected, Found>(
  expected: readonly Expected[],
  found: readonly Found[],
  keyOf: (thing: Expected | Found) => string,
): { pairs: [Expected, Found][]; missing: Expected[]; extra: Found[] } {
  const left = [...found];
  const pairs: [Expected, Found][] = [];
  const missing: Expected[] = [];
  for (const wanted of expected) {
    const at = left.findIndex((thing) => keyOf(thing) === keyOf(wanted));
    const [counterpart] = at < 0 ? [] : left.splice(at, 1);
    if (counterpart === undefined) missing.push(wanted);
    else pairs.push([wanted, counterpart]);
  }
  return { pairs, missing, extra: left };
}

/** The properties in which two things differ: texts, flags and lists of texts, of which the order counts. */
export function propertyDifferences<Name extends string>(
  about: string,
  expected: Readonly<Record<Name, unknown>>,
  found: Readonly<Record<Name, unknown>>,
  names: readonly Name[],
): string[] {
  return names
    .filter((name) => JSON.stringify(found[name]) !== JSON.stringify(expected[name]))
    .map((name) => `${about}: ${name} is ${shown(found[name])}; the catalogue says ${shown(expected[name])}`);
}

function shown(value: unknown): string {
  return Array.isArray(value) ? `[${value.join(", ")}]` : String(value);
}
