import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { dirname } from "node:path";

/** Accounts without rights, in the order they are tried. */
const CANDIDATES = ["postgres", "nobody"];

export interface ServerAccount {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** The account that PostgreSQL runs as, since it refuses to run as root; undefined when we aren't root. */
export function serverAccount(): ServerAccount | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of CANDIDATES) {
    const uid = idOf("-u", name);
    const gid = idOf("-g", name);
    if (uid !== undefined && gid !== undefined) return { name, uid, gid };
  }
  throw new Error(
    `PostgreSQL doesn't run as root, and none of the accounts ${CANDIDATES.join(", ")} exists: run as an ordinary ` +
      "user, create one of them, or name a PostgreSQL server of your own.",
  );
}

/** Whether an account may pass through every folder above a path. */
export function canReach(account: ServerAccount, path: string): boolean {
  const folder = dirname(path);
  const stat = statSync(folder, { throwIfNoEntry: false });
  if (stat !== undefined) {
    const needed = stat.uid === account.uid ? 0o100 : stat.gid === account.gid ? 0o010 : 0o001;
    if ((stat.mode & needed) === 0) return false;
  }
  return folder === path || canReach(account, folder);
}

function idOf(flag: "-u" | "-g", name: string): number | undefined {
  try {
    const id = Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
    return Number.isSafeInteger(id) && id > 0 ? id : undefined;
  } catch {
    return undefined;
  }
}
