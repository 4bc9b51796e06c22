import path from "node:path";
import { InvalidInput, Unavailable } from "@runtime-cloud/service-kit/errors";
import type { Specification } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { EngineStopped } from "../engines/engine-stopped.ts";
import { workDirectoryFull } from "../engines/sandbox/sandbox-failure.ts";
import { versionsOf } from "./available-programs.ts";
import { InvalidProgram } from "./program.ts";
import type { ProgramCache } from "./program-cache.ts";
import { loadProgram, type Program } from "./program-directory.ts";
import { parseProgramVersion, requestedVersion } from "./program-version.ts";
import { keepPublished, loadPublished, type ProgramDatabase, type PublishedKey } from "./published-programs.ts";
import { hasCode } from "../system-error.ts";

/** How many versions a refusal names. */
const MAX_NAMED = 5;

/**
 * The program that a tenant means by `name@version`: the installation's, else the tenant's own, which then stays
 * published until the transaction ends. Throws InvalidInput for `programVersion` when there is none, or none that can
 * be used.
 */
export async function findProgram(context: Context, tx: ProgramDatabase, key: PublishedKey): Promise<Program> {
  requestedVersion(key);
  try {
    const installed = await loadProgram(context.settings.PROGRAMS_DIR, key.programVersion);
    if (installed) return installed;
    await keepPublished(tx, key);
    const published = await loadPublished(tx, programCache(context), key);
    if (published) return published;
  } catch (error) {
    if (error instanceof InvalidProgram) throw refusal(error.message);
    throw isFullDisk(error) ? new Unavailable("the service has no space left on its disk for the program") : error;
  }
  throw refusal(
    `${key.programVersion} is no program that is there: publish it, or name ${await others(context, tx, key)}`,
  );
}

/**
 * The program that a specification was declared with: the same content, or none. Throws InvalidProgram when it has
 * gone, or when its name leads to other content now; EngineStopped where there is no space for it.
 */
export async function declaredProgram(
  context: Context,
  { tenantId, programVersion, programDigest }: Pick<Specification, "tenantId" | "programVersion" | "programDigest">,
): Promise<Program> {
  const installed = await loadProgram(context.settings.PROGRAMS_DIR, programVersion);
  if (installed?.digest === programDigest) return installed;
  const cache = programCache(context);
  const published = await loadPublished(context.client, cache, { tenantId, programVersion }).catch((error: unknown) => {
    throw isFullDisk(error) ? new EngineStopped(workDirectoryFull(cache.directory)) : error;
  });
  if (published?.digest === programDigest) return published;

  const there = installed ?? published;
  if (!there) {
    throw new InvalidProgram("isn't here any more: put it back, or declare another version", programVersion);
  }
  throw new InvalidProgram(
    `its content has changed since it was declared (${programDigest} then, ${there.digest} now): put back what it was, ` +
      "or give the new content a version of its own and declare that",
    programVersion,
  );
}

function isFullDisk(error: unknown): boolean {
  return hasCode(error, "ENOSPC", "EDQUOT");
}

function programCache({ settings, newId, clock }: Context): ProgramCache {
  return { directory: path.resolve(settings.WORK_DIR, "programs"), most: settings.PROGRAM_CACHE_SIZE, newId, clock };
}

async function others({ settings }: Context, db: ProgramDatabase, key: PublishedKey): Promise<string> {
  const { tenantId, programVersion } = key;
  const name = parseProgramVersion(programVersion)?.name;
  const versions =
    name === undefined ? [] : await versionsOf(settings.PROGRAMS_DIR, db, { tenantId, name, take: MAX_NAMED });
  if (versions.length === 0) return "one that ListPrograms lists";
  return `a version that is there: ${versions.map((version) => `${name}@${version}`).join(", ")}`;
}

function refusal(description: string): InvalidInput {
  return new InvalidInput([{ field: "programVersion", description }]);
}
