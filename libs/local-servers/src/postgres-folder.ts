import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

import { canReach, type ServerAccount } from "./server-account.ts";
import { SYSTEM_PLACE, systemFolder } from "./system-folder.ts";

/** `dataDir` where the account that PostgreSQL runs as can reach it; else always the same folder that it can. */
export function reachableFolder(
  dataDir: string,
  account: ServerAccount | undefined,
  log: (line: string) => void,
): string {
  const wanted = resolve(dataDir);
  mkdirSync(dirname(wanted), { recursive: true });
  if (account === undefined || canReach(account, wanted)) return wanted;
  const folder = join(systemFolder("data", wanted), "postgres");
  log(`PostgreSQL runs as ${account.name}, who can't reach ${wanted}: its data is in ${folder}`);
  return folder;
}

/** A new folder for a server whose data ends with it. */
export function scratchFolder(account: ServerAccount | undefined): string {
  const reachable = account === undefined || canReach(account, join(tmpdir(), "any"));
  return mkdtempSync(join(reachable ? tmpdir() : SYSTEM_PLACE, "runtime-cloud-postgres-"));
}
