import { DiagnosticSeverity, fromFile, Parser } from "@asyncapi/parser";

const USAGE = "Usage: node --import tsx tools/check-asyncapi.ts <document>";
const TOLD: readonly number[] = [DiagnosticSeverity.Error, DiagnosticSeverity.Warning];

const [path] = process.argv.slice(2);
process.exitCode = path === undefined ? usage() : await check(path);

function usage(): number {
  console.error(USAGE);
  return 2;
}

/** Prints what AsyncAPI's own parser finds wrong with a document, each with its place; hints are left out. */
async function check(path: string): Promise<number> {
  const { diagnostics } = await fromFile(new Parser(), path).parse();
  const problems = diagnostics.filter(({ severity }) => TOLD.includes(severity));
  for (const { message, path: place } of problems) console.error(`${place.join(".")}: ${message}`);
  return problems.length === 0 ? 0 : 1;
}
