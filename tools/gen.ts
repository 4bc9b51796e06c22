import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { generate, generateClients } from "./gen/clients.ts";
import { documentGenerator, documents, staleDocuments } from "./gen/documents.ts";

const USAGE = `Usage: npm run gen [-- --check]

  (nothing)  protobuf types, database clients and the committed documents, where their sources changed
  --check    changes nothing; fails and names each committed document that is stale`;

const root = fileURLToPath(new URL("..", import.meta.url));

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const options = parse(args);
  if (typeof options === "string") {
    console.error(`${options}\n\n${USAGE}`);
    return 2;
  }
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  if (options.check) return check();
  await generateClients(root);
  await generate(root, documents.map(documentGenerator));
  return 0;
}

/** The options, or what is wrong with them. */
function parse(args: string[]): { check: boolean; help: boolean } | string {
  try {
    const options = {
      check: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    } as const;
    return parseArgs({ args, options }).values;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function check(): Promise<number> {
  const stale = await staleDocuments(root);
  if (stale.length === 0) return 0;
  console.error(`Stale: ${stale.join(", ")}. Run \`npm run gen\` and commit the result.`);
  return 1;
}
