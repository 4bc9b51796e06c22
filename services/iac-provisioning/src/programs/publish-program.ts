import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { PublishProgramRequest } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/programs_pb";
import { AlreadyExists, InvalidInput } from "@runtime-cloud/service-kit/errors";
import { command } from "../runs/command.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { programMessage } from "./program-message.ts";
import { foreignFileProblem } from "./foreign-files.ts";
import { packArchive } from "./pack-archive.ts";
import { InvalidProgram } from "./program.ts";
import { type ProgramContent, readProgramContent } from "./program-content.ts";
import { listPrograms } from "./program-directory.ts";
import { parseProgramVersion, type ProgramVersion } from "./program-version.ts";
import { findPublication, type Publication } from "./published-programs.ts";
import { unpackArchive } from "./unpack-archive.ts";

const { method } = IaCProvisioningService;

export function publishingRoutes(context: Context) {
  return {
    async publishProgram(request, call: HandlerContext) {
      const { programVersion } = request;
      const version = versionOf(request);
      await refuseInstalled(context, programVersion);
      // Before the transaction: it takes its time, and a connection is better used.
      const { content, archive } = await readArchive(request);
      const publish = command(context, method.publishProgram, async (unit, _request, { tenantId, subject }) => {
        const row = { tenantId, ...version, digest: content.digest, archive, publishedBy: subject };
        const publication = await store(unit, row, programVersion);
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

/** A version never changes: the first content that it was published with stays. */
async function store(unit: ServiceUnit, row: NewProgram, programVersion: string): Promise<Publication> {
  await unit.tx.publishedProgram.createMany({ data: { ...row, publishedAt: unit.at }, skipDuplicates: true });
  const publication = await findPublication(unit.tx, { tenantId: row.tenantId, programVersion });
  if (publication?.digest === row.digest) return publication;
  throw new AlreadyExists(
    `${programVersion} was published with other content, ${publication?.digest}: publish ${row.digest} as another version`,
  );
}

function versionOf({ programVersion }: PublishProgramRequest): ProgramVersion {
  const version = parseProgramVersion(programVersion);
  if (version) return version;
  const description =
    "is not name@version, like web-service@1.0.0: the name in words of a-z and 0-9 with hyphens between them, " +
    "the version as three numbers and perhaps a pre-release";
  throw new InvalidInput([{ field: "programVersion", description }]);
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
