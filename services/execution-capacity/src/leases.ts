import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  RenewLeaseResponse_Result,
  RevokeLeaseResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { LeaseState as LeaseStateCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { once } from "@runtime-cloud/eventing/idempotency";
import { pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { IllegalTransition } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { type CapacityLease, LeaseState, type WorkerPool } from "../generated/prisma/client.ts";
import { acquire } from "./acquire.ts";
import type { CallUnits } from "./call-unit.ts";
import { endLease, isOpen, ownLease } from "./capacity-lease.ts";
import { type Capacity, lockCapacity } from "./capacity-lock.ts";
import type { Context, ServiceUnit } from "./context.ts";
import { leaseMessage, leaseMessages, lifetime } from "./lease-message.ts";
import { renew } from "./renew.ts";
import { settle } from "./settle.ts";
import { usablePool } from "./worker-pool.ts";

type LeaseMethods = "acquireLease" | "renewLease" | "releaseLease" | "revokeLease" | "getLease" | "listLeases";

export function leaseRoutes(
  context: Context,
  { changing, free }: CallUnits,
): Pick<ServiceImpl<typeof ExecutionCapacityService>, LeaseMethods> {
  const { client } = context;

  return {
    acquireLease: ({ poolId, projectId, holderKind, holderId, ...request }, call) =>
      changing(call, async (unit, tenantId) => {
        const pool = await usablePool(unit.tx, tenantId, poolId);
        refuseRetired(pool);
        const capacity = await lockCapacity(context, unit, { scopes: [{ tenantId, projectId }], pools: [pool] });
        const wanted = {
          tenantId,
          projectId,
          holderKind,
          holderId,
          poolTenantId: pool.tenantId,
          poolId,
          units: request.units || 1,
          priority: request.priority,
          ttlSeconds: Math.ceil(request.ttl ? durationMs(request.ttl) / 1_000 : 0),
        };
        const lease = await acquire(capacity, wanted, request.wait ? durationMs(request.wait) : 0);
        return { lease: await leaseMessage(unit.tx, lease), ...lifetime(lease, capacity.now) };
      }),

    renewLease: ({ leaseId: id, fencingToken, ttl }, call) =>
      free(call, async (unit, tenantId) => {
        const ttlMs = ttl ? durationMs(ttl) : 0;
        const { result, lease, now } = await renew(context, unit, { tenantId, id, fencingToken, ttlMs });
        const left = result === "RENEWED" ? lifetime(lease, now) : {};
        return { result: RenewLeaseResponse_Result[result], lease: await leaseMessage(unit.tx, lease), ...left };
      }),

    releaseLease: ({ leaseId }, call) =>
      changing(call, async (unit, tenantId) => {
        const lease = await ownLease(unit.tx, tenantId, leaseId);
        if (!isOpen(lease)) return { lease: await leaseMessage(unit.tx, lease) };
        const { capacity, lease: locked } = await lockLease(unit, lease);
        const ended = isOpen(locked)
          ? await endLease(capacity, locked, { type: "release", at: capacity.now, reason: "HOLDER" })
          : locked;
        await settle(capacity);
        return { lease: await leaseMessage(unit.tx, ended) };
      }),

    revokeLease: (request, call) =>
      changing(call, (unit, tenantId) =>
        once(unit, { tenantId, method: ExecutionCapacityService.method.revokeLease, request }, async () => {
          const { capacity, lease } = await lockLease(unit, await ownLease(unit.tx, tenantId, request.leaseId));
          const ended = await endLease(capacity, lease, { type: "revoke", at: capacity.now, reason: "OPERATOR" });
          await settle(capacity);
          return create(RevokeLeaseResponseSchema, { lease: await leaseMessage(unit.tx, ended) });
        }),
      ),

    async getLease({ leaseId }, call) {
      const lease = await ownLease(client, principalOf(call).tenantId, leaseId);
      return { lease: await leaseMessage(client, lease) };
    },

    async listLeases(request, call) {
      const { tenantId } = principalOf(call);
      const { poolId, projectId } = request;
      const state = Object.values(LeaseState).find((name) => LeaseStateCode[name] === request.state);
      const filter = { ...(poolId && { poolId }), ...(projectId && { projectId }), ...(state && { state }) };
      const after = pageAfter(request.pageToken, filter);
      const size = pageSize(request.pageSize);
      const rows = await client.capacityLease.findMany({
        where: { tenantId, ...filter, ...(after && { id: { lt: after } }) },
        orderBy: { id: "desc" },
        take: size + 1,
      });
      const page = rows.slice(0, size);
      const last = rows.length > size ? page.at(-1) : undefined;
      return { leases: await leaseMessages(client, page), nextPageToken: last ? pageToken(last.id, filter) : "" };
    },
  };

  async function lockLease(
    unit: ServiceUnit,
    lease: CapacityLease,
  ): Promise<{ capacity: Capacity; lease: CapacityLease }> {
    const pools = [{ tenantId: lease.poolTenantId, id: lease.poolId }];
    const capacity = await lockCapacity(context, unit, { scopes: [lease], pools });
    return { capacity, lease: await ownLease(unit.tx, lease.tenantId, lease.id) };
  }
}

function refuseRetired({ id, state }: WorkerPool): void {
  if (state !== "RETIRED") return;
  const reason = "not-in-this-state";
  throw new IllegalTransition({ aggregate: "WorkerPool", id, state, event: "acquire", reason, allowed: [] });
}
