import type { Comparison } from "./comparison.ts";

/** Our plane's events and those that the machines announce on some edge, both ways. */
export function compareAnnouncements(expected: readonly string[], announced: readonly string[]): Comparison {
  return {
    kind: "events that machines announce",
    expected: expected.length,
    found: announced.length,
    differences: [
      ...without(expected, announced).map((name) => `${name}: no edge of any machine announces it`),
      ...without(announced, expected).map((name) => `${name}: a machine announces it, but it is no event of our plane`),
    ],
  };
}

/** The events that proto declares and those that the packages deliver, both ways. */
export function compareDelivered(declared: readonly string[], delivered: readonly string[]): Comparison {
  const modules = "the modules in libs/contracts/src/event-catalogue.ts";
  return {
    kind: "events that are delivered",
    expected: declared.length,
    found: delivered.length,
    differences: [
      ...without(declared, delivered).map((name) => `${name}: declared in proto, but not in ${modules}`),
      ...without(delivered, declared).map((name) => `${name}: in ${modules}, but not in proto: run \`npm run gen\``),
    ],
  };
}

function without(names: readonly string[], others: readonly string[]): string[] {
  return names.filter((name) => !others.includes(name));
}
