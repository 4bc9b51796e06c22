import { create, type MessageShape } from "@bufbuild/protobuf";
import { QuotaSchema } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/quotas_pb";
import { QuotaState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import type { Quota } from "../generated/prisma/client.ts";
import type { Tx } from "./context.ts";

/** A quota as it is answered, beside what its scope uses now. */
export async function quotaMessage(tx: Tx, quota: Quota): Promise<MessageShape<typeof QuotaSchema>> {
  const { tenantId, projectId } = quota;
  const usage = await tx.scopeUsage.findUnique({ where: { tenantId_projectId: { tenantId, projectId } } });
  return create(QuotaSchema, {
    quotaId: quota.id,
    tenantId,
    ...(projectId && { projectId }),
    state: QuotaState[quota.state],
    concurrentRuns: quota.concurrentRuns,
    concurrentSandboxes: quota.concurrentSandboxes,
    weight: quota.weight,
    usedRuns: usage?.usedRuns ?? 0,
    usedSandboxes: usage?.usedSandboxes ?? 0,
  });
}
