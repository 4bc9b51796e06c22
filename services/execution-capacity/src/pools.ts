import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import {
  CordonPoolResponseSchema,
  DrainPoolResponseSchema,
  RetirePoolResponseSchema,
  SetWorkerPoolResponseSchema,
  UncordonPoolResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/pools_pb";
import {
  PoolKind as PoolKindCode,
  PoolScaling as PoolScalingCode,
  PoolState as PoolStateCode,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { once } from "@runtime-cloud/eventing/idempotency";
import { NAME, pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { PoolEvent } from "@runtime-cloud/state-machines/worker-pool";
import { PoolKind, PoolScaling, PoolState, type WorkerPool } from "../generated/prisma/client.ts";
import type { CallUnits } from "./call-unit.ts";
import { type Capacity, lockCapacity } from "./capacity-lock.ts";
import type { Context, ServiceUnit } from "./context.ts";
import { poolMessage, poolMessages } from "./pool-message.ts";
import { setPool } from "./pool-size.ts";
import { settle } from "./settle.ts";
import { advancePool, findPool, ownPool, usablePool } from "./worker-pool.ts";

type PoolMethods =
  "setWorkerPool" | "cordonPool" | "uncordonPool" | "drainPool" | "retirePool" | "getWorkerPool" | "listWorkerPools";

export function poolRoutes(
  context: Context,
  { changing }: CallUnits,
): Pick<ServiceImpl<typeof ExecutionCapacityService>, PoolMethods> {
  const { client } = context;
  const { method } = ExecutionCapacityService;

  return {
    setWorkerPool: (request, call) =>
      changing(call, (unit, tenantId) =>
        once(unit, { tenantId, method: method.setWorkerPool, request }, async () => {
          const { poolId: id, size, shared, environmentId, programVersion } = request;
          const capacity = await lockPool(unit, tenantId, id);
          const pool = await setPool(capacity, {
            tenantId,
            id,
            size,
            shared,
            kind: named(
              "kind",
              Object.values(PoolKind).find((name) => PoolKindCode[name] === request.kind),
            ),
            scaling: named(
              "scaling",
              Object.values(PoolScaling).find((name) => PoolScalingCode[name] === request.scaling),
            ),
            environmentId: environmentId || null,
            programVersion: programVersion || null,
          });
          await setLabels(unit, pool, request.labels);
          return create(SetWorkerPoolResponseSchema, { pool: await settled(capacity, pool) });
        }),
      ),

    cordonPool: (request, call) =>
      changing(call, (unit, tenantId) =>
        once(unit, { tenantId, method: method.cordonPool, request }, async () => {
          const pool = await change(unit, tenantId, request.poolId, () => ({
            type: "cordon",
            note: request.note || null,
          }));
          return create(CordonPoolResponseSchema, { pool });
        }),
      ),

    uncordonPool: (request, call) =>
      changing(call, (unit, tenantId) =>
        once(unit, { tenantId, method: method.uncordonPool, request }, async () => {
          const pool = await change(unit, tenantId, request.poolId, () => ({ type: "uncordon" }));
          return create(UncordonPoolResponseSchema, { pool });
        }),
      ),

    drainPool: (request, call) =>
      changing(call, (unit, tenantId) =>
        once(unit, { tenantId, method: method.drainPool, request }, async () => {
          const withinMs = request.within ? durationMs(request.within) : 0;
          const pool = await change(unit, tenantId, request.poolId, ({ now }) => {
            const deadline = new Date(now.getTime() + withinMs);
            unit.after(() => context.arm("drain-deadline", deadline, { pool: request.poolId }));
            return { type: "drain", deadline, note: request.note || null };
          });
          return create(DrainPoolResponseSchema, { pool });
        }),
      ),

    retirePool: (request, call) =>
      changing(call, (unit, tenantId) =>
        once(unit, { tenantId, method: method.retirePool, request }, async () => {
          const pool = await change(unit, tenantId, request.poolId, () => ({ type: "retire" }));
          return create(RetirePoolResponseSchema, { pool });
        }),
      ),

    async getWorkerPool({ poolId }, call) {
      return { pool: await poolMessage(client, await usablePool(client, principalOf(call).tenantId, poolId)) };
    },

    async listWorkerPools(request, call) {
      const state = Object.values(PoolState).find((name) => PoolStateCode[name] === request.state);
      const filter = state ? { state } : {};
      const after = pageAfter(request.pageToken, filter, NAME);
      const size = pageSize(request.pageSize);
      const rows = await client.workerPool.findMany({
        where: { tenantId: principalOf(call).tenantId, ...filter, ...(after && { id: { gt: after } }) },
        orderBy: { id: "asc" },
        take: size + 1,
      });
      const page = rows.slice(0, size);
      const last = rows.length > size ? page.at(-1) : undefined;
      return { pools: await poolMessages(client, page), nextPageToken: last ? pageToken(last.id, filter) : "" };
    },
  };

  function lockPool(unit: ServiceUnit, tenantId: string, id: string): Promise<Capacity> {
    return lockCapacity(context, unit, { scopes: [{ tenantId, projectId: "" }], pools: [{ tenantId, id }] });
  }

  /** Does to a tenant's own pool what an operator asks for, with all that follows from it. */
  async function change(unit: ServiceUnit, tenantId: string, id: string, event: (capacity: Capacity) => PoolEvent) {
    const capacity = await lockPool(unit, tenantId, id);
    const pool = await advancePool(unit, await ownPool(unit.tx, tenantId, id), event(capacity));
    if (pool.state === "RETIRED") await giveUpWaiting(capacity, pool);
    return settled(capacity, pool);
  }
}

/** The pool once everything that waited for the change has had its turn. */
async function settled(capacity: Capacity, pool: WorkerPool) {
  await settle(capacity);
  return poolMessage(capacity.unit.tx, (await findPool(capacity.unit.tx, pool)) ?? pool);
}

/** Nobody waits for a pool that is gone: its waiters are overdue at once. */
async function giveUpWaiting({ unit, wakes, now }: Capacity, { tenantId, id }: WorkerPool): Promise<void> {
  await unit.tx.capacityLease.updateMany({
    where: { poolTenantId: tenantId, poolId: id, state: "WAITING" },
    data: { waitDeadline: now },
  });
  unit.after(() => wakes.arm("wait-over", now, { pool: id }));
}

async function setLabels({ tx }: ServiceUnit, { tenantId, id: poolId }: WorkerPool, labels: Record<string, string>) {
  await tx.poolLabel.deleteMany({ where: { tenantId, poolId } });
  const data = Object.entries(labels).map(([name, value]) => ({ tenantId, poolId, name, value }));
  await tx.poolLabel.createMany({ data });
}

function named<Name>(field: string, name: Name | undefined): Name {
  if (name === undefined) throw new InvalidInput([{ field, description: "is none that this version knows" }]);
  return name;
}
