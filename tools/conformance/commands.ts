import type { CatalogueCommand } from "./catalogue.ts";
import { type Comparison, match, propertyDifferences } from "./comparison.ts";

/** A command as proto declares it: ours as a method of its service, another plane's as a message. */
export interface DeclaredCommand extends CatalogueCommand {
  isMethod: boolean;
}

/** The catalogue's commands of one plane and the declared ones; where a page gives no summary, any is right. */
export function compareCommands(
  plane: string,
  expected: readonly CatalogueCommand[],
  found: readonly DeclaredCommand[],
  asMethods: boolean,
): Comparison {
  const { pairs, missing, extra } = match(expected, found, ({ name }) => name);
  return {
    kind: `commands of the ${plane}`,
    expected: expected.length,
    found: found.length,
    differences: [
      ...missing.map(({ name, service }) => `${name}: proto declares no such command of ${service}`),
      ...extra.map(({ name }) => `${name}: the catalogue has no such command`),
      ...pairs.flatMap(([wanted, command]) => commandDifferences(wanted, command, asMethods)),
    ],
  };
}

function commandDifferences(wanted: CatalogueCommand, command: DeclaredCommand, asMethod: boolean): string[] {
  const { name, summary } = wanted;
  const properties = [
    "service",
    "handledBy",
    "resultEvents",
    ...(summary === "" ? [] : (["summary"] as const)),
  ] as const;
  const form = asMethod ? "a method of its service" : "a message";
  return [
    ...propertyDifferences(name, wanted, command, properties),
    ...(command.isMethod === asMethod ? [] : [`${name}: has to be ${form}`]),
  ];
}
