// What `npm start`, `npm test` and their like run first, in plain JavaScript without dependencies: it makes a fresh
// clone ready, does nothing where all is up to date, and becomes the program that its first argument names.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { alone } from "./bootstrap/alone.mjs";
import { isInstalled } from "./bootstrap/installed.mjs";

const LEAST_NODE = [20, 19];
const INSTALL_OUTPUT_BYTES = 16 * 1024 * 1024;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [target, ...args] = process.argv.slice(2);

requireNode();
const file = requireTarget();
await prepare();
process.argv = [process.execPath, file, ...args];
await import(file);

function requireNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1])) return;
  refuse(
    `Node ${LEAST_NODE.join(".")} or newer is needed, and this is ${process.versions.node}: see https://nodejs.org`,
  );
}

function requireTarget() {
  const path = target && resolve(root, target);
  if (!path) refuse("Usage: node tools/bootstrap.mjs PROGRAM.ts [ARGUMENT ...]");
  if (!existsSync(path)) refuse(`There is no program ${target} in ${root}.`);
  return path;
}

async function prepare() {
  await alone(join(root, ".data/prepare.lock"), async () => {
    if (!isInstalled(root)) await step("installed dependencies", install);
    await import("tsx");
    const { generateClients } = await import("./gen/clients.ts");
    await generateClients(root);
  });
}

async function install() {
  console.log("  installing dependencies (npm ci)");
  // npm says where it is; started without it, we look on the PATH.
  const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ["npm"];
  const [command, ...rest] = [...npm, "ci", "--no-audit", "--no-fund"];
  try {
    await promisify(execFile)(command, rest, { cwd: root, maxBuffer: INSTALL_OUTPUT_BYTES });
  } catch (error) {
    refuse(`\`npm ci\` failed:\n${error.stderr || error.message}`);
  }
}

async function step(name, work) {
  const started = performance.now();
  await work();
  console.log(`  ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
}

function refuse(reason) {
  console.error(reason);
  process.exit(1);
}
