import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import type { PostgresBinaries } from "./postgres-binaries.ts";
import type { ServerAccount } from "./server-account.ts";

export const SUPERUSER = "postgres";
const MAJOR_VERSION = "18";

/** The files of one embedded server. */
export interface PostgresCluster {
  /** PostgreSQL's own folder. */
  readonly data: string;
  readonly logFile: string;
  /** Of {@link SUPERUSER}. */
  readonly password: string;
}

/**
 * The cluster in `folder`, made if it isn't there. It is made aside and moved into place, so an interrupted run
 * leaves nothing half-made, and of two runs at once one wins.
 */
export async function postgresCluster(
  folder: string,
  binaries: PostgresBinaries,
  account: ServerAccount | undefined,
): Promise<PostgresCluster> {
  const data = join(folder, "data");
  if (!existsSync(data)) await create(folder, binaries, account);
  const version = readFileSync(join(data, "PG_VERSION"), "utf8").trim();
  if (version !== MAJOR_VERSION) {
    throw new Error(
      `${folder} holds data of PostgreSQL ${version}, and the embedded server is ${MAJOR_VERSION}: remove the folder to ` +
        "start afresh, or serve it with its own version.",
    );
  }
  const password = readFileSync(join(folder, "password"), "utf8");
  return { data, logFile: join(folder, "postgres.log"), password };
}

async function create(folder: string, binaries: PostgresBinaries, account: ServerAccount | undefined): Promise<void> {
  const draft = mkdtempSync(`${folder}.draft-`);
  const data = join(draft, "data");
  const password = join(draft, "password");
  const passwordForInitdb = join(draft, "initdb-password");
  try {
    chmodSync(draft, 0o755);
    mkdirSync(data, { mode: 0o700 });
    const secret = randomBytes(24).toString("hex");
    for (const file of [password, passwordForInitdb]) writeFileSync(file, secret, { mode: 0o600 });
    if (account !== undefined) {
      for (const path of [data, passwordForInitdb]) chownSync(path, account.uid, account.gid);
    }
    await initdb(data, passwordForInitdb, binaries, account);
    rmSync(passwordForInitdb);
    renameSync(draft, folder);
  } catch (error) {
    // Another run that was faster has moved its own into place.
    if (!existsSync(join(folder, "data"))) throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

async function initdb(
  data: string,
  passwordFile: string,
  { initdb }: PostgresBinaries,
  account: ServerAccount | undefined,
): Promise<void> {
  const args = [
    ...[`--pgdata=${data}`, `--username=${SUPERUSER}`, `--pwfile=${passwordFile}`],
    ...["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"],
  ];
  const options = { uid: account?.uid, gid: account?.gid, cwd: "/", env: { PATH: process.env["PATH"], LC_ALL: "C" } };
  try {
    await promisify(execFile)(initdb, args, options);
  } catch (error) {
    const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    throw new Error(
      `The embedded PostgreSQL can't run here: ${said || String(error)}\nInstall what is missing, or name a PostgreSQL ` +
        "server of your own.",
      { cause: error },
    );
  }
}
