import type { ServiceImpl } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import {
  ProvisioningKind as KindCode,
  RunMode as ModeCode,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { NotFound } from "@runtime-cloud/service-kit/errors";
import { ProvisioningKind, RunMode } from "../../generated/prisma/client.ts";
import { advanceRun } from "./advance-run.ts";
import { approveRun } from "./approve-run.ts";
import { cancelRun } from "./cancel-run.ts";
import { command } from "../command.ts";
import type { Context, Tx } from "../context.ts";
import { definedEnumNamed } from "@runtime-cloud/service-kit/enum-named";
import { planRun } from "./plan-run.ts";
import { queuePositions } from "./queue-position.ts";
import { runMessage, type RunWithProgram } from "./run-message.ts";
import { unsealed } from "./run-row.ts";
import { findSpecification } from "../specifications/specifications.ts";

const { method } = IaCProvisioningService;

export function runRoutes(context: Context) {
  return {
    planProvisioning: command(context, method.planProvisioning, async (unit, request, { tenantId, subject }) => {
      const specification = await findSpecification(unit.tx, tenantId, request.specificationId);
      const run = await planRun(context, unit, {
        specification,
        kind: definedEnumNamed(ProvisioningKind, KindCode[request.kind]),
        mode: definedEnumNamed(RunMode, ModeCode[request.mode]),
        requestedBy: subject,
        ...(request.proposalId !== undefined && { proposalId: request.proposalId }),
      });
      const positions = await queuePositions(unit.tx, [run]);
      return { run: runMessage({ ...run, specification }, { queuePosition: positions.get(run.id) }) };
    }),

    cancelProvisioning: command(context, method.cancelProvisioning, async (unit, request, { tenantId, subject }) => {
      const run = await findRun(unit.tx, tenantId, request.provisioningRunId);
      const { reason, force } = request;
      const cancelled = await cancelRun(context, unit, run, { by: subject, reason, force });
      return { run: runMessage({ ...run, ...cancelled }) };
    }),

    approveProvisioning: command(context, method.approveProvisioning, async (unit, request, { tenantId, subject }) => {
      const run = await findRun(unit.tx, tenantId, request.provisioningRunId);
      const approved = await approveRun(context, unit, run, { by: subject, planDigest: request.planDigest });
      return { run: runMessage({ ...run, ...approved }) };
    }),

    rejectProvisioning: command(context, method.rejectProvisioning, async (unit, request, { tenantId, subject }) => {
      const run = await findRun(unit.tx, tenantId, request.provisioningRunId);
      const { reason } = request;
      const rejected = await advanceRun(context, unit, run, { type: "reject", at: unit.at, by: subject, reason });
      return { run: runMessage({ ...run, ...rejected }) };
    }),
  } satisfies Partial<ServiceImpl<typeof IaCProvisioningService>>;
}

/** Throws NotFound, also for another tenant's. */
export async function findRun(db: Pick<Tx, "provisioningRun">, tenantId: string, id: string): Promise<RunWithProgram> {
  const run = await db.provisioningRun.findFirst({
    where: { id, tenantId },
    omit: unsealed,
    include: { specification: { select: { programVersion: true } } },
  });
  if (!run) throw new NotFound(`provisioning run ${id} does not exist`);
  return run;
}
