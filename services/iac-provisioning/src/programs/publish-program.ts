import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { PublishProgramRequest } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/programs_pb";
import { AlreadyExists, Exhausted, InvalidInput } from "@runtime-cloud/service-kit/errors";
import { command } from "../command.ts";
import type { Context, ServiceUnit, Tx } from "../context.ts";
import { programMessage } from "./program-message.ts";
import { foreignFileProblem } from "./foreign-files.ts";
import { packArchive } from "./pack-archive.ts";
import { InvalidProgram } from "./program.ts";
import { type ProgramContent, readProgramContent } from "./program-content.ts";
import { listPrograms } from "./program-directory.ts";
import { formatProgramVersion, type ProgramVersion, requestedVersion } from "./program-version.ts";
import type { Publication } from "./published-programs.ts";
import { unpackArchive } from "./unpack-archive.ts";

const { method } = IaCProvisioningService;

/** Room comes only by somebody's doing. */
const RETRY_MS = 60_000;

export function publishingRoutes(context: Context) {
  return {
    async publishProgram(request, call: HandlerContext) {
      const { programVersion } = request;
      const version = requestedVersion(request);
      await refuseInstalled(context, programVersion);
      // Before the transaction: it takes its time, and a connection is better used.
      const { content, archive } = await readArchive(request);
      const publish = command(context, method.publishProgram, async (unit, _request, { tenantId, subject }) => {
        const row = { tenantId, ...version, digest: content.digest, archive, publishedBy: subject };
        const publication = await store(context, unit, row);
        return { program: programMessage(programVersion, content, publication) };
      });
      return publish(request, call);
    },
  } satisfies Partial<ServiceImpl<typeof IaCProvisioningService>>;
}

interface NewProgram extends ProgramVersion {
  tenantId: string;
  digest: string;
  archive: Uint8Array<ArrayBuffer>;
  publishedBy: string;
}

/** A version never changes: the first content that it was published with stays, also while it is unpublished. */
async function store(context: Context, { tx, at }: ServiceUnit, row: NewProgram): Promise<Publication> {
  const { tenantId, name, version } = row;
  await lockPublishing(tx, tenantId);
  const where = { tenantId_name_version: { tenantId, name, version } };
  const first = await tx.publishedProgram.findUnique({ where, omit: { archive: true } });
  if (first && first.digest !== row.digest) {
    throw new AlreadyExists(
      `${formatProgramVersion(row)} was published with other content, ${first.digest}: ` +
        `publish ${row.digest} as another version`,
    );
  }
  if (first && first.unpublishedAt === null) return first;
  await refuseOneTooMany(context, tx, tenantId);
  const data = { ...row, publishedAt: at, unpublishedAt: null };
  return tx.publishedProgram.upsert({ where, create: data, update: data, omit: { archive: true } });
}

/** A tenant publishes one program after the other, so that what is counted is what there is. */
async function lockPublishing(tx: Tx, tenantId: string): Promise<void> {
  await tx.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended(${`published-programs ${tenantId}`}, 0))`;
}

async function refuseOneTooMany({ settings }: Context, tx: Tx, tenantId: string): Promise<void> {
  const { PROGRAMS_PER_TENANT: most } = settings;
  if ((await tx.publishedProgram.count({ where: { tenantId, unpublishedAt: null } })) < most) return;
  const description =
    `tenant ${tenantId} has published as many programs as PROGRAMS_PER_TENANT allows, ${most}: unpublish versions that ` +
    "no specification needs (UnpublishProgram), or have the limit raised";
  throw new Exhausted({ subject: `tenant:${tenantId}`, description, retryAfterMs: RETRY_MS });
}

async function refuseInstalled({ settings }: Context, programVersion: string): Promise<void> {
  const installed = await listPrograms(settings.PROGRAMS_DIR);
  if (!installed.includes(programVersion)) return;
  throw new AlreadyExists(
    `${programVersion} is a program of this installation: publish yours under another name or version`,
  );
}

/** The program in an archive, and the archive as it is kept: packed anew, so that it holds that and nothing else. */
async function readArchive({ archive }: PublishProgramRequest): Promise<{
  content: ProgramContent;
  archive: Uint8Array<ArrayBuffer>;
}> {
  try {
    const files = await unpackArchive(archive);
    const content = readProgramContent(files);
    const foreign = foreignFileProblem(files);
    if (foreign !== undefined) throw new InvalidProgram(foreign);
    return { content, archive: new Uint8Array(await packArchive(files)) };
  } catch (error) {
    if (!(error instanceof InvalidProgram)) throw error;
    throw new InvalidInput([{ field: "archive", description: error.problem }]);
  }
}
