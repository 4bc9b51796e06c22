import { create, toBinary } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { type Program, ProgramSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/programs_pb";
import { NAME, pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Context } from "../context.ts";
import { programMessage } from "./program-message.ts";
import { type AvailableProgram, availablePrograms } from "./available-programs.ts";
import { InvalidProgram } from "./program.ts";
import { loadProgram } from "./program-directory.ts";
import { findPublication, readPublished } from "./published-programs.ts";

/** A page may be shorter than was asked for: this many are looked at for one that another engine's are left out of. */
const MAX_LOOKED_AT = 200;
/** Well under what a client takes as one message. */
const MAX_PAGE_BYTES = 1024 * 1024;
const ENGINES = ["terraform", "manifests"];

export function programQueries(context: Context) {
  return {
    async listPrograms(request, call) {
      const { tenantId } = principalOf(call);
      const filter = { engine: filteredEngine(request.engine) };
      const after = pageAfter(request.pageToken, filter, NAME) ?? "";
      const listing = { tenantId, after, take: MAX_LOOKED_AT + 1 };
      const available = await availablePrograms(context.settings.PROGRAMS_DIR, context.client, listing);

      const page = await readPage(context, {
        tenantId,
        available,
        engine: request.engine,
        size: pageSize(request.pageSize),
      });
      const { programs, unusable, last } = page;
      const nextPageToken =
        last === undefined || last === available.at(-1) ? "" : pageToken(last.programVersion, filter);
      return { programs, unusable, nextPageToken };
    },
  } satisfies Partial<ServiceImpl<typeof IaCProvisioningService>>;
}

/** One after the other, so that only one program's content is in memory at a time. */
async function readPage(
  context: Context,
  {
    tenantId,
    available,
    engine,
    size,
  }: { tenantId: string; available: AvailableProgram[]; engine: string; size: number },
) {
  const programs: Program[] = [];
  const unusable: string[] = [];
  let bytes = 0;
  let last: AvailableProgram | undefined;
  for (const candidate of available.slice(0, MAX_LOOKED_AT)) {
    if (programs.length + unusable.length === size || bytes > MAX_PAGE_BYTES) break;
    last = candidate;
    const read = await readProgram(context, tenantId, candidate);
    if (read === undefined) continue;
    if (typeof read === "string") unusable.push(`${candidate.programVersion}: ${read}`);
    else if (engine === "" || read.engine === engine) {
      programs.push(read);
      bytes += toBinary(ProgramSchema, read).length;
    }
  }
  return { programs, unusable, last };
}

/** The program, or why it can't be used; undefined when it went away meanwhile. */
async function readProgram(
  context: Context,
  tenantId: string,
  { programVersion, installed }: AvailableProgram,
): Promise<Program | string | undefined> {
  try {
    if (installed) {
      const program = await loadProgram(context.settings.PROGRAMS_DIR, programVersion);
      return program && create(ProgramSchema, programMessage(programVersion, program));
    }
    const key = { tenantId, programVersion };
    const publication = await findPublication(context.client, key);
    if (!publication) return undefined;
    const content = await readPublished(context.client, key, publication);
    return create(ProgramSchema, programMessage(programVersion, content, publication));
  } catch (error) {
    if (error instanceof InvalidProgram) return error.problem;
    if (!installed) throw error;
    context.logger.warn({ err: error, programVersion }, "program can't be read");
    return "its files can't be read: the service's log has the reason";
  }
}

function filteredEngine(engine: string): string {
  if (engine === "" || ENGINES.includes(engine)) return engine;
  throw new InvalidInput([{ field: "engine", description: `must be ${ENGINES.join(" or ")}, or empty for every one` }]);
}
