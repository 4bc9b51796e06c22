import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

/** The TypeScript files below a folder, parsed; those alone whose text has one of the words, where words are given. */
export function sourceFiles(folder: string, words: readonly string[] = []): ts.SourceFile[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => ({ path, text: readFileSync(join(folder, path), "utf8") }))
    .filter(({ text }) => words.length === 0 || words.some((word) => text.includes(word)))
    .map(({ path, text }) => ts.createSourceFile(path, text, ts.ScriptTarget.Latest));
}

/** Every call in a file, the calls inside calls too. */
export function callsIn(file: ts.SourceFile): ts.CallExpression[] {
  const calls: ts.CallExpression[] = [];
  const look = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) calls.push(node);
    ts.forEachChild(node, look);
  };
  look(file);
  return calls;
}
