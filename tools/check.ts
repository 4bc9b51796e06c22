import { fileURLToPath } from "node:url";

import { tryNode } from "./run.ts";
import { seconds } from "./seconds.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const CACHE = "node_modules/.cache";

const checks = {
  format: ["node_modules/prettier/bin/prettier.cjs", "--check", ".", "--log-level", "warn", "--cache"],
  lint: [
    "node_modules/eslint/bin/eslint.js",
    ".",
    "--max-warnings",
    "0",
    "--cache",
    "--cache-location",
    `${CACHE}/eslint/`,
  ],
  types: ["node_modules/typescript/bin/tsc", "--noEmit", "--pretty", "false"],
  generated: ["--import", "tsx", "tools/gen.ts", "--check"],
  conformance: ["--import", "tsx", "tools/conformance.ts"],
  asyncapi: ["--import", "tsx", "tools/check-asyncapi.ts", "docs/asyncapi.yaml"],
  protos: ["node_modules/@bufbuild/buf/bin/buf", "lint"],
  compatible: ["--import", "tsx", "tools/contracts.ts", "check"],
};

const results = await Promise.all(Object.entries(checks).map(([name, args]) => check(name, args)));
process.exitCode = results.every((ok) => ok) ? 0 : 1;

async function check(name: string, args: readonly string[]): Promise<boolean> {
  const started = performance.now();
  const { ok, output } = await tryNode(root, args);
  console.log(`  ${name.padEnd(11)} ${ok ? "ok" : "FAILED"} (${seconds(started)})`);
  if (!ok) console.log(output);
  return ok;
}
