import { create, type MessageShape } from "@bufbuild/protobuf";
import { QuotaSchema } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/quotas_pb";
import { QuotaState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import type { Quota, ScopeUsage } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";

type QuotaMessage = MessageShape<typeof QuotaSchema>;

/** A quota as it is answered, beside what its scope uses now. */
export async function quotaMessage(tx: Tx, quota: Quota): Promise<QuotaMessage> {
  const { tenantId, projectId } = quota;
  return message(quota, await tx.scopeUsage.findUnique({ where: { tenantId_projectId: { tenantId, projectId } } }));
}

/** The same for some quotas of one tenant. */
export async function quotaMessages(tx: Tx, tenantId: string, quotas: readonly Quota[]): Promise<QuotaMessage[]> {
  const projectId = { in: quotas.map((quota) => quota.projectId) };
  const usages = await tx.scopeUsage.findMany({ where: { tenantId, projectId } });
  return quotas.map((quota) =>
    message(
      quota,
      usages.find((usage) => usage.projectId === quota.projectId),
    ),
  );
}

function message(quota: Quota, usage: ScopeUsage | null | undefined): QuotaMessage {
  const { tenantId, projectId } = quota;
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
