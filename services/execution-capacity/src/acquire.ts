import { Exhausted, IllegalTransition } from "@runtime-cloud/service-kit/errors";
import type { CapacityLease } from "../generated/prisma/client.ts";
import { endLease, enqueue, isOverdue, type LeaseRequest } from "./capacity-lease.ts";
import type { Capacity } from "./capacity-lock.ts";
import { type Obstacle, obstacleTo } from "./obstacle.ts";
import { scopesOf } from "./scopes.ts";
import { settle } from "./settle.ts";
import { recordObstacle } from "./waiting.ts";
import { findPool } from "./worker-pool.ts";

/** When somebody who was refused at once may ask again. */
const RETRY_MS = 1_000;

/**
 * The lease of a holder in a pool: the one that it has or waits for, else a new one, which takes its place in the queue
 * and is granted from there. Throws Exhausted when it isn't granted and the request names no wait.
 */
export async function acquire(
  capacity: Capacity,
  request: Omit<LeaseRequest, "waitDeadline">,
  waitMs: number,
): Promise<CapacityLease> {
  const { unit, wakes, now } = capacity;
  await refuseEndedHolder(capacity, request);
  const open = await openLease(capacity, request);
  if (open && !isOverdue(open, now)) return open;
  if (open) await endLease(capacity, open, { type: "expire", at: now });

  const waitDeadline = waitMs > 0 ? new Date(now.getTime() + waitMs) : null;
  const { id } = await enqueue(capacity, { ...request, waitDeadline });
  await settle(capacity);

  const lease = await unit.tx.capacityLease.findUniqueOrThrow({ where: { id } });
  if (lease.state !== "WAITING") return lease;
  const obstacle = await obstacleOf(capacity, lease);
  if (!waitDeadline) throw new Exhausted({ ...obstacle, retryAfterMs: RETRY_MS });
  await recordObstacle(unit, lease, obstacle);
  unit.after(() => wakes.arm("wait-over", waitDeadline, { pool: lease.poolId }));
  return lease;
}

/** Events come late: a holder that has ended never holds again. */
async function refuseEndedHolder({ unit }: Capacity, { tenantId, holderKind, holderId }: Holder): Promise<void> {
  const ended = await unit.tx.endedHolder.findUnique({
    where: { tenantId_holderKind_holderId: { tenantId, holderKind, holderId } },
  });
  if (!ended) return;
  const reason = "holder-ended";
  throw new IllegalTransition({
    aggregate: holderKind,
    id: holderId,
    state: "ENDED",
    event: "acquire",
    reason,
    allowed: [],
  });
}

function openLease({ unit }: Capacity, request: Holder & Pick<LeaseRequest, "poolTenantId" | "poolId">) {
  const { tenantId, holderKind, holderId, poolTenantId, poolId } = request;
  return unit.tx.capacityLease.findFirst({
    where: { tenantId, holderKind, holderId, poolTenantId, poolId, state: { in: ["WAITING", "ACTIVE"] } },
  });
}

async function obstacleOf({ unit }: Capacity, lease: CapacityLease): Promise<Obstacle> {
  const { tenantId, projectId, poolTenantId, poolId } = lease;
  const pool = await findPool(unit.tx, { tenantId: poolTenantId, id: poolId });
  const obstacle = pool && obstacleTo(lease, pool, await scopesOf(unit.tx, tenantId, [projectId]));
  if (obstacle) return obstacle;
  const description = `pool ${poolId} serves those who wait for it first`;
  return { reason: "POOL_FULL", subject: `pool:${poolId}`, description };
}

type Holder = Pick<LeaseRequest, "tenantId" | "holderKind" | "holderId">;
