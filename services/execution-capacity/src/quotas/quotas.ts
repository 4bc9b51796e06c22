import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import {
  RetireQuotaResponseSchema,
  SetQuotaResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/quotas_pb";
import { commit } from "@runtime-cloud/eventing/commit";
import { begin } from "@runtime-cloud/eventing/decision";
import { once } from "@runtime-cloud/eventing/idempotency";
import { pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { NotFound } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { quota } from "@runtime-cloud/state-machines/quota";
import type { Quota } from "../../generated/prisma/client.ts";
import type { CallUnits } from "../leases/call-unit.ts";
import type { Context, ServiceUnit, Tx } from "../context.ts";
import { advanceQuota } from "./quota.ts";
import { quotaMessage, quotaMessages } from "./quota-message.ts";
import { lockCapacity, settleClaim } from "../capacity/unit-capacity.ts";

type QuotaMethods = "setQuota" | "retireQuota" | "getQuota" | "listQuotas";

export function quotaRoutes(
  context: Context,
  { changing }: CallUnits,
): Pick<ServiceImpl<typeof ExecutionCapacityService>, QuotaMethods> {
  const { client } = context;

  return {
    setQuota: (request, call) =>
      changing(call, (unit, tenantId) =>
        once(unit, { tenantId, method: ExecutionCapacityService.method.setQuota, request }, async () => {
          const { projectId = "", concurrentRuns, concurrentSandboxes } = request;
          const limits = { concurrentRuns, concurrentSandboxes, weight: request.weight || 1 };
          const claim = { scopes: [{ tenantId, projectId }] };
          await lockCapacity(unit, claim);
          const row = await setLimits(unit, { tenantId, projectId, ...limits });
          await settleClaim(context, unit, claim);
          return create(SetQuotaResponseSchema, { quota: await quotaMessage(unit.tx, row) });
        }),
      ),

    retireQuota: (request, call) =>
      changing(call, (unit, tenantId) =>
        once(unit, { tenantId, method: ExecutionCapacityService.method.retireQuota, request }, async () => {
          const claim = { scopes: [{ tenantId, projectId: "" }] };
          await lockCapacity(unit, claim);
          const row = await unit.tx.quota.findFirst({ where: { id: request.quotaId, tenantId } });
          if (!row) throw new NotFound(`quota ${request.quotaId} does not exist`);
          const retired = await advanceQuota(unit, row, { type: "retire" });
          await settleClaim(context, unit, claim);
          return create(RetireQuotaResponseSchema, { quota: await quotaMessage(unit.tx, retired) });
        }),
      ),

    async getQuota({ projectId = "" }, call) {
      const row = await quotaInForce(client, principalOf(call).tenantId, projectId);
      if (row) return { quota: await quotaMessage(client, row) };
      throw new NotFound(
        `${projectId ? `project ${projectId}` : "the tenant"} has no quota: nothing limits it by itself`,
      );
    },

    async listQuotas({ includeRetired, ...request }, call) {
      const { tenantId } = principalOf(call);
      const filter = { includeRetired };
      const after = pageAfter(request.pageToken, filter);
      const size = pageSize(request.pageSize);
      const rows = await client.quota.findMany({
        where: { tenantId, ...(!includeRetired && { state: "ACTIVE" }), ...(after && { id: { lt: after } }) },
        orderBy: { id: "desc" },
        take: size + 1,
      });
      const page = rows.slice(0, size);
      const last = rows.length > size ? page.at(-1) : undefined;
      return {
        quotas: await quotaMessages(client, tenantId, page),
        nextPageToken: last ? pageToken(last.id, filter) : "",
      };
    },
  };
}

type Limits = Pick<Quota, "tenantId" | "projectId" | "concurrentRuns" | "concurrentSandboxes" | "weight">;

/** Under the tenant's lock. Setting the limits that are in force already changes nothing and announces nothing. */
async function setLimits(unit: ServiceUnit, { tenantId, projectId, ...limits }: Limits): Promise<Quota> {
  const row = await quotaInForce(unit.tx, tenantId, projectId);
  if (!row) {
    const first = { id: unit.newId(), tenantId, projectId, ...limits };
    return commit(unit, begin(quota, first), ({ state }) => unit.tx.quota.create({ data: { ...first, state } }));
  }
  const { concurrentRuns, concurrentSandboxes, weight } = limits;
  const unchanged =
    row.concurrentRuns === concurrentRuns && row.concurrentSandboxes === concurrentSandboxes && row.weight === weight;
  return unchanged ? row : advanceQuota(unit, row, { type: "set", ...limits });
}

function quotaInForce(tx: Tx, tenantId: string, projectId: string): Promise<Quota | null> {
  return tx.quota.findFirst({ where: { tenantId, projectId, state: "ACTIVE" } });
}
