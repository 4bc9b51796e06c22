import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { breaking } from "./contracts/breaking.ts";
import { UnusableFolder } from "./contracts/output-folder.ts";
import { pack } from "./contracts/pack.ts";
import { publish, PublicationRefused } from "./contracts/publish.ts";
import { lastPublished } from "./contracts/published.ts";

const USAGE = `Usage: npm run contracts -- pack [--out DIR]
       npm run contracts -- check
       npm run contracts -- publish [--out DIR]

  pack     packs @runtime-cloud/contracts for npm into DIR (dist/ without it)
  check    fails and says why if who uses the published contract would break
  publish  checks, packs, and takes this contract for the published one; commit the image that it writes, and hand the
           tarball to \`npm publish\`. The version is that of libs/contracts/package.json, each only once.`;

const VERBS = ["pack", "check", "publish"] as const;
const root = fileURLToPath(new URL("..", import.meta.url));

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const command = parse(args);
  if (typeof command === "string") {
    console.error(`${command}\n\n${USAGE}`);
    return 2;
  }
  if (command.help) {
    console.log(USAGE);
    return 0;
  }
  try {
    console.log(await run(command));
    return 0;
  } catch (error) {
    if (error instanceof UnusableFolder) {
      console.error(error.message);
      return 2;
    }
    if (!(error instanceof PublicationRefused)) throw error;
    console.error(error.message);
    return 1;
  }
}

/** The command, or what is wrong with it. */
function parse(args: string[]): Command | string {
  try {
    const options = {
      out: { type: "string", default: "dist" },
      help: { type: "boolean", short: "h", default: false },
    } as const;
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const [name, ...rest] = positionals;
    const verb = VERBS.find((known) => known === name);
    if (values.help) return { verb: "check", help: true, out: values.out };
    if (verb === undefined) return name === undefined ? "A command is missing." : `Unknown command: ${name}`;
    if (rest.length > 0) return `Too many arguments: ${positionals.join(" ")}`;
    return { verb, help: false, out: resolve(values.out) };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Answers what to print. */
async function run({ verb, out }: Command): Promise<string> {
  if (verb === "pack") return pack(root, out);
  if (verb === "check") return check();
  const { tarball, image } = await publish(root, out);
  return `${tarball}\n${image}`;
}

async function check(): Promise<string> {
  const last = await lastPublished(root);
  if (!last) throw new PublicationRefused("No contract is published yet: run `npm run contracts -- publish`.");
  const broken = await breaking(root, last);
  if (broken !== undefined) throw new PublicationRefused(broken);
  return `Who uses version ${last.version} can go on.`;
}

interface Command {
  verb: (typeof VERBS)[number];
  help: boolean;
  /** Absolute. */
  out: string;
}
