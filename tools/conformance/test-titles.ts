import ts from "typescript";

import { callsIn, sourceFiles } from "./source-files.ts";

const DECLARE_TESTS = new Set(["describe", "it", "test"]);

/** The titles of the tests below a folder, in the files that have one of the words. */
export function testTitles(folder: string, words: readonly string[]): string[] {
  return sourceFiles(folder, words)
    .filter(({ fileName }) => fileName.endsWith(".test.ts"))
    .flatMap(titlesIn);
}

/** `test("title", …)`, `describe("title", …)`, `test.each(…)("title", …)` and the like; one that is skipped doesn't count. */
export function titlesIn(file: ts.SourceFile): string[] {
  return callsIn(file).flatMap(({ expression, arguments: [title] }) => {
    const [name, ...modifiers] = chain(expression);
    if (name === undefined || !DECLARE_TESTS.has(name) || modifiers.some((modifier) => /skip|todo/.test(modifier)))
      return [];
    return title && ts.isStringLiteralLike(title) ? [title.text] : [];
  });
}

/** The names that lead to what is called: `test.each(…)` is test, each. */
function chain(node: ts.Expression): string[] {
  if (ts.isIdentifier(node)) return [node.text];
  if (ts.isPropertyAccessExpression(node)) return [...chain(node.expression), node.name.text];
  if (ts.isCallExpression(node)) return chain(node.expression);
  return [];
}
