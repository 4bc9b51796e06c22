import type { Tx } from "../context.ts";
import { InvalidProgram } from "./program.ts";
import { cachedProgram, type ProgramCache } from "./program-cache.ts";
import { type ProgramContent, readProgramContent } from "./program-content.ts";
import type { Program } from "./program-directory.ts";
import { programDigest, type ProgramFile } from "./program-files.ts";
import { parseProgramVersion } from "./program-version.ts";
import { unpackArchive } from "./unpack-archive.ts";

/** Where a tenant's programs are read from: the client, or the transaction under way. */
export type ProgramDatabase = Pick<Tx, "publishedProgram" | "$queryRaw">;

/** A program of the tenant that is looked for. */
export interface PublishedKey {
  readonly tenantId: string;
  /** `name@version`. */
  readonly programVersion: string;
}

/** What there is to know of one that is published, without its content. */
export interface Publication {
  readonly digest: string;
  readonly publishedBy: string;
  readonly publishedAt: Date;
}

/** Undefined also for another tenant's, and for one that is unpublished. */
export async function findPublication(db: ProgramDatabase, key: PublishedKey): Promise<Publication | undefined> {
  const where = uniqueKey(key);
  if (!where) return undefined;
  const row = await db.publishedProgram.findUnique({
    where: { ...where, unpublishedAt: null },
    omit: { archive: true },
  });
  return row ?? undefined;
}

/** Keeps a program, if there is one, from being unpublished until the transaction ends. */
export async function keepPublished(tx: ProgramDatabase, { tenantId, programVersion }: PublishedKey): Promise<void> {
  const parsed = parseProgramVersion(programVersion);
  if (!parsed) return;
  await tx.$queryRaw`
    SELECT FROM published_program
    WHERE tenant_id = ${tenantId} AND name = ${parsed.name} AND version = ${parsed.version} FOR SHARE`;
}

/** The program on this machine's disk. Undefined when the tenant has none such; throws InvalidProgram. */
export async function loadPublished(
  db: ProgramDatabase,
  cache: ProgramCache,
  key: PublishedKey,
): Promise<Program | undefined> {
  const publication = await findPublication(db, key);
  if (!publication) return undefined;
  const { digest } = publication;
  return naming(key, async () => {
    const { directory, files } = await cachedProgram(cache, digest, () => publishedFiles(db, key, digest));
    return { ...readProgramContent(files), programVersion: key.programVersion, directory };
  });
}

/** What the program says of itself, read without leaving anything on the disk. Throws InvalidProgram. */
export async function readPublished(
  db: ProgramDatabase,
  key: PublishedKey,
  { digest }: Publication,
): Promise<ProgramContent> {
  return naming(key, async () => readProgramContent(await publishedFiles(db, key, digest)));
}

async function publishedFiles(db: ProgramDatabase, key: PublishedKey, digest: string): Promise<ProgramFile[]> {
  const where = uniqueKey(key);
  const row = where && (await db.publishedProgram.findUnique({ where, select: { archive: true } }));
  if (!row?.archive) throw new InvalidProgram("is no longer published");
  const files = await unpackArchive(row.archive);
  if (programDigest(files) === digest) return files;
  throw new InvalidProgram("what is stored of it is damaged: publish it as another version");
}

async function naming<T>({ programVersion }: PublishedKey, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof InvalidProgram ? new InvalidProgram(error.problem, programVersion) : error;
  }
}

function uniqueKey({ tenantId, programVersion }: PublishedKey) {
  const parsed = parseProgramVersion(programVersion);
  return parsed && { tenantId_name_version: { tenantId, ...parsed } };
}
