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
} from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { once } from "@runtime-cloud/eventing/idempotency";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { PoolEvent } from "@runtime-cloud/state-machines/worker-pool";
import { PoolKind, PoolScaling, type WorkerPool } from "../../generated/prisma/client.ts";
import type { CallUnits } from "../leases/call-unit.ts";
import type { Capacity } from "../capacity/capacity.ts";
import type { Claim } from "../capacity/capacity-lock.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { setLabels } from "./pool-labels.ts";
import { listPools } from "./pool-list.ts";
import { poolMessage } from "./pool-message.ts";
import { setPool } from "./pool-size.ts";
import { leavePool, joinPool } from "../queue/pool-queue.ts";
import { lockCapacity, settleClaim } from "../capacity/unit-capacity.ts";
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
          const claim = await claimOf(unit, tenantId, id);
          const { now } = await lockCapacity(unit, claim);
          const pool = await setPool(context, unit, now, {
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
          await setLabels(unit.tx, pool, request.labels);
          await joinPool(unit.tx, pool);
          return create(SetWorkerPoolResponseSchema, { pool: await settled(unit, claim, pool) });
        }),
      ),

    cordonPool: (request, call) =>
      changing(call, (unit, tenantId) =>
        once(unit, { tenantId, method: method.cordonPool, request }, async () => {
          const { resumeAfter } = request;
          const pool = await change(unit, tenantId, request.poolId, ({ now }) => {
            const resumeAt = resumeAfter ? new Date(now.getTime() + durationMs(resumeAfter)) : null;
            if (resumeAt) unit.after(() => context.arm("pool-resume", resumeAt, { pool: request.poolId }));
            return { type: "cordon", note: request.note || null, resumeAt };
          });
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

    listWorkerPools: (request, call) => listPools(client, principalOf(call).tenantId, request),
  };

  /** Does to a tenant's own pool what an operator asks for, with all that follows from it. */
  async function change(unit: ServiceUnit, tenantId: string, id: string, event: (capacity: Capacity) => PoolEvent) {
    const claim = await claimOf(unit, tenantId, id);
    const capacity = await lockCapacity(unit, claim);
    const pool = await advancePool(unit, await ownPool(unit.tx, tenantId, id), event(capacity));
    if (pool.state === "RETIRED") await leavePool(unit.tx, pool);
    return settled(unit, claim, pool);
  }

  /** The pool once everything that waited for the change has had its turn. */
  async function settled(unit: ServiceUnit, claim: Claim, pool: WorkerPool) {
    await settleClaim(context, unit, claim);
    return poolMessage(unit.tx, (await findPool(unit.tx, pool)) ?? pool);
  }
}

/** A pool, and those among which waiters may choose, since they may come to this one. */
async function claimOf({ tx }: ServiceUnit, tenantId: string, id: string): Promise<Claim> {
  const selecting = await tx.workerPool.findMany({
    where: { selecting: { gt: 0 } },
    select: { tenantId: true, id: true },
  });
  return { pools: [{ tenantId, id }, ...selecting], scopes: [{ tenantId, projectId: "" }] };
}

function named<Name>(field: string, name: Name | undefined): Name {
  if (name === undefined) throw new InvalidInput([{ field, description: "is none that this version knows" }]);
  return name;
}
