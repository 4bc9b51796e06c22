import type { ServiceImpl } from "@connectrpc/connect";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { IllegalTransition, NotFound } from "@runtime-cloud/service-kit/errors";
import type { PublishedProgram, Specification } from "../../generated/prisma/client.ts";
import type { Context, Tx } from "../context.ts";
import { command } from "../command.ts";
import { formatProgramVersion, type ProgramVersion, requestedVersion } from "./program-version.ts";

const { method } = IaCProvisioningService;

/** How many of the specifications that need a program a refusal names. */
const MAX_NAMED = 5;

export function unpublishingRoutes(context: Context) {
  return {
    unpublishProgram: command(context, method.unpublishProgram, async ({ tx, at }, request, { tenantId }) => {
      const version = requestedVersion(request);
      const program = await lockPublished(tx, tenantId, version);
      if (program.unpublishedAt) return answer(program.digest, program.unpublishedAt);
      await refuseNeeded(tx, program);
      const where = { tenantId_name_version: { tenantId, ...version } };
      await tx.publishedProgram.update({ where, data: { archive: null, unpublishedAt: at } });
      return answer(program.digest, at);
    }),
  } satisfies Partial<ServiceImpl<typeof IaCProvisioningService>>;
}

type Published = Omit<PublishedProgram, "archive">;

/** Nobody declares it meanwhile: see `keepPublished`. Throws NotFound, also for the installation's programs. */
async function lockPublished(tx: Tx, tenantId: string, { name, version }: ProgramVersion): Promise<Published> {
  await tx.$queryRaw`
    SELECT FROM published_program
    WHERE tenant_id = ${tenantId} AND name = ${name} AND version = ${version} FOR UPDATE`;
  const where = { tenantId_name_version: { tenantId, name, version } };
  const program = await tx.publishedProgram.findUnique({ where, omit: { archive: true } });
  if (program) return program;
  throw new NotFound(
    `${formatProgramVersion({ name, version })} is no program that this tenant published; those that ListPrograms shows ` +
      "as installed are in the service's PROGRAMS_DIR",
  );
}

async function refuseNeeded(tx: Tx, program: Published): Promise<void> {
  const { tenantId, digest: programDigest } = program;
  const programVersion = formatProgramVersion(program);
  const where = { tenantId, programVersion, programDigest, state: { in: ["DECLARED" as const, "APPLIED" as const] } };
  const naming = await tx.specification.findMany({ where, orderBy: { id: "asc" }, take: MAX_NAMED });
  if (naming.length === 0) return;

  const more = (await tx.specification.count({ where })) - naming.length;
  const refusal = new IllegalTransition({
    aggregate: "PublishedProgram",
    id: programVersion,
    state: "PUBLISHED",
    event: "unpublish",
    reason: "named-by-specifications",
    allowed: [],
  });
  refusal.message +=
    `: it is named by ${naming.map(shown).join(", ")}${more > 0 ? ` and ${more} more` : ""}; ` +
    "apply a version of another program in its place, withdraw it, or tear it down";
  throw refusal;
}

function shown({ id, kind, specificationVersion, environmentId, state }: Specification): string {
  return `specification ${id} (${state}, version ${specificationVersion} of ${kind} in environment ${environmentId})`;
}

function answer(digest: string, unpublishedAt: Date) {
  return { digest, unpublishedAt: timestampFromDate(unpublishedAt) };
}
