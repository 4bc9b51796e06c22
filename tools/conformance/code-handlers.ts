import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

import type { Handling } from "./handlers.ts";
import { callsIn, sourceFiles } from "./source-files.ts";

/**
 * The handlers of the services below a folder, by their sources: calls of `on(SomeEventSchema, "Handler", …)` in a
 * service that has a `defineService({ subscriber })`. No service is started for it.
 */
export function codeHandlers(services: string): Handling[] {
  return readdirSync(services)
    .map((service) => join(services, service, "src"))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => handlersOf(sourceFiles(folder, ["defineService", "event-handler"])));
}

/** The handlers of one service's files. */
export function handlersOf(files: readonly ts.SourceFile[]): Handling[] {
  const calls = files.flatMap(callsIn);
  const [consumer] = calls.flatMap((call) => subscriberOf(call) ?? []);
  if (consumer === undefined) return [];
  return calls.flatMap((call) => handlerOf(call) ?? []).map((handling) => ({ consumer, ...handling }));
}

function subscriberOf({ expression, arguments: [definition] }: ts.CallExpression): string | undefined {
  if (!isNamed(expression, "defineService") || !definition || !ts.isObjectLiteralExpression(definition)) return;
  const value = definition.properties
    .filter(ts.isPropertyAssignment)
    .find(({ name }) => isNamed(name, "subscriber"))?.initializer;
  return value && ts.isStringLiteral(value) ? value.text : undefined;
}

function handlerOf({
  expression,
  arguments: [schema, name],
}: ts.CallExpression): Omit<Handling, "consumer"> | undefined {
  if (!isNamed(expression, "on") || !schema || !ts.isIdentifier(schema) || !name) return;
  const event = schema.text.replace(/Schema$/, "");
  return { event, handler: ts.isStringLiteral(name) ? name.text : "a name that isn't written out" };
}

function isNamed(node: ts.Node, name: string): boolean {
  return ts.isIdentifier(node) && node.text === name;
}
