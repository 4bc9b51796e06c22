import { listPrograms } from "./program-directory.ts";
import { parseProgramVersion } from "./program-version.ts";
import type { ProgramDatabase } from "./published-programs.ts";

/** A program version that a tenant may declare. */
export interface AvailableProgram {
  /** `name@version`. */
  readonly programVersion: string;
  /** Whether it came with the installation; one that the tenant published under the same name is put aside then. */
  readonly installed: boolean;
}

/** The installation's and the tenant's own after a `name@version`, in the order of these texts' bytes. */
export async function availablePrograms(
  programsDirectory: string,
  db: ProgramDatabase,
  { tenantId, after, take }: { tenantId: string; after: string; take: number },
): Promise<AvailableProgram[]> {
  const installed = (await listPrograms(programsDirectory)).filter((version) => version > after);
  const published = await db.$queryRaw<{ key: string }[]>`
    SELECT key FROM (SELECT (name || '@' || version) COLLATE "C" AS key
                     FROM published_program WHERE tenant_id = ${tenantId} AND unpublished_at IS NULL) AS own
    WHERE key > ${after} ORDER BY key LIMIT ${take}`;
  const versions = new Map(published.map(({ key }) => [key, false]));
  for (const version of installed) versions.set(version, true);
  const sorted = [...versions].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, take);
  return sorted.map(([programVersion, isInstalled]) => ({ programVersion, installed: isInstalled }));
}

/** Versions of one name, newest first. */
export async function versionsOf(
  programsDirectory: string,
  db: ProgramDatabase,
  { tenantId, name, take }: { tenantId: string; name: string; take: number },
): Promise<string[]> {
  const installed = (await listPrograms(programsDirectory)).flatMap((text) => parseProgramVersion(text) ?? []);
  const published = await db.publishedProgram.findMany({
    where: { tenantId, name, unpublishedAt: null },
    select: { name: true, version: true },
    orderBy: { publishedAt: "desc" },
    take,
  });
  const ofName = [...installed, ...published].filter((each) => each.name === name);
  const versions = new Set(ofName.map(({ version }) => version));
  return [...versions].sort((a, b) => byNumbers.compare(b, a)).slice(0, take);
}

const byNumbers = new Intl.Collator("en", { numeric: true });
