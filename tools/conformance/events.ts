import type { CatalogueEvent, CatalogueField } from "./catalogue.ts";
import { type Comparison, match, propertyDifferences } from "./comparison.ts";

/** An event as its proto message declares it, in the catalogue's words. */
export interface DeclaredEvent extends CatalogueEvent {
  /** Its producer's page isn't in the catalogue, so its shape is assumed. */
  assumed: boolean;
}

const PROPERTIES = [
  "description",
  "topic",
  "producer",
  "context",
  "scope",
  "version",
  "aggregate",
  "consumers",
] as const;
const byName = ({ name }: { name: string }) => name;

/** The catalogue's events and the declared ones that aren't assumed, property by property. */
export function compareEvents(expected: readonly CatalogueEvent[], declared: readonly DeclaredEvent[]): Comparison {
  const found = declared.filter(({ assumed }) => !assumed);
  const { pairs, missing, extra } = match(expected, found, byName);
  return {
    kind: "events",
    expected: expected.length,
    found: found.length,
    differences: [
      ...missing.map(({ name }) => `${name}: no proto message declares this event of the catalogue`),
      ...extra.map(({ name }) => `${name}: the catalogue has no such event, and it isn't marked as assumed`),
      ...pairs.flatMap(([wanted, event]) => propertyDifferences(wanted.name, wanted, event, PROPERTIES)),
    ],
  };
}

/** The fields of the events that both sides have: name, type, and whether they are required. */
export function compareFields(expected: readonly CatalogueEvent[], declared: readonly DeclaredEvent[]): Comparison {
  const { pairs } = match(expected, declared, byName);
  return {
    kind: "fields of events",
    expected: pairs.flatMap(([{ fields }]) => fields).length,
    found: pairs.flatMap(([, { fields }]) => fields).length,
    differences: pairs.flatMap(([wanted, event]) => fieldDifferences(wanted.name, wanted.fields, event.fields)),
  };
}

/** Events that are declared as assumed: each is consumed by one of ours, and none of them is in the catalogue. */
export function compareAssumed(
  expected: readonly CatalogueEvent[],
  declared: readonly DeclaredEvent[],
  consumed: readonly { event: string }[],
): Comparison {
  const known = new Set(expected.map(byName));
  const assumed = declared.filter((event) => event.assumed).map(byName);
  const needed = new Set(consumed.map(({ event }) => event).filter((event) => !known.has(event)));
  return {
    kind: "assumed events",
    expected: needed.size,
    found: assumed.length,
    differences: [
      ...[...needed].filter((name) => !assumed.includes(name)).map((name) => `${name}: consumed, but not declared`),
      ...assumed
        .filter((name) => known.has(name))
        .map((name) => `${name}: marked as assumed, but the catalogue has it`),
      ...assumed
        .filter((name) => !known.has(name) && !needed.has(name))
        .map((name) => `${name}: assumed, but no subscription of ours needs it`),
    ],
  };
}

function fieldDifferences(
  event: string,
  expected: readonly CatalogueField[],
  found: readonly CatalogueField[],
): string[] {
  const { pairs, missing, extra } = match(expected, found, byName);
  return [
    ...missing.map(({ name }) => `${event}.${name}: the proto message lacks this field of the catalogue`),
    ...extra.map(({ name }) => `${event}.${name}: the catalogue has no such field`),
    ...pairs.flatMap(([wanted, field]) =>
      propertyDifferences(`${event}.${wanted.name}`, wanted, field, ["type", "required"]),
    ),
  ];
}
