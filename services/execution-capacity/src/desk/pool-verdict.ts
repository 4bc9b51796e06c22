import { create, type MessageShape } from "@bufbuild/protobuf";
import { PoolVerdictSchema } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/usage_pb";
import { WaitReason } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import type { WorkerPool } from "../../generated/prisma/client.ts";
import { obstacleIn, placementOf } from "./acquire.ts";
import { type Capacity, scopeOf } from "../capacity/capacity.ts";
import type { LeaseRequest } from "../capacity/capacity-lease.ts";
import type { Tx } from "../context.ts";
import type { AcquireOperation } from "./lease-operation.ts";
import type { Obstacle } from "./obstacle.ts";
import { bestFor } from "./placement.ts";
import { positionFor } from "../queue/queue-position.ts";

/** What a pool would make of a request now. */
export interface Verdict {
  pool: WorkerPool;
  message: MessageShape<typeof PoolVerdictSchema>;
}

/** How many pools are explained. */
const MAX_VERDICTS = 200;

/** The pools that a request allows, the best first: those that would grant it before those that wouldn't. */
export async function poolVerdicts(
  tx: Tx,
  capacity: Capacity,
  operation: AcquireOperation,
  request: LeaseRequest,
  pools: readonly WorkerPool[],
): Promise<Verdict[]> {
  const found = new Map(pools.map((pool) => [pool, obstacleIn(capacity, request, pool)]));
  const free = pools.filter((pool) => !found.get(pool));
  const others = pools.filter((pool) => found.get(pool));
  const best = [...bestFirst(free, operation), ...bestFirst(others, operation)].slice(0, MAX_VERDICTS);
  const verdicts: Verdict[] = [];
  for (const pool of best) {
    const position = await positionFor(tx, pool, newcomer(capacity, request));
    verdicts.push({ pool, message: message(pool, request, found.get(pool), position) });
  }
  return verdicts;
}

function bestFirst(pools: readonly WorkerPool[], operation: AcquireOperation): WorkerPool[] {
  const left = [...pools];
  const ordered: WorkerPool[] = [];
  for (let best = bestFor(left, operation.units, placementOf(operation)); best;) {
    ordered.push(best);
    left.splice(left.indexOf(best), 1);
    best = bestFor(left, operation.units, placementOf(operation));
  }
  return ordered;
}

function newcomer(capacity: Capacity, { tenantId, projectId, priority }: LeaseRequest) {
  const weightOf = (id: string) => scopeOf(capacity, tenantId, id).quota?.weight ?? 1;
  return { tenantId, projectId, priority, tenantWeight: weightOf(""), projectWeight: weightOf(projectId) };
}

function message(pool: WorkerPool, request: LeaseRequest, obstacle: Obstacle | undefined, position: number) {
  const { id, currentSize: size, used, waiting } = pool;
  return create(PoolVerdictSchema, {
    ...{ poolId: id, size, used, waiting, position },
    ...(obstacle && { reason: WaitReason[obstacle.reason] }),
    explanation: explanation(pool, request, obstacle, position - 1),
  });
}

function explanation(pool: WorkerPool, { units }: LeaseRequest, obstacle: Obstacle | undefined, ahead: number): string {
  const { id, currentSize, used, resumeAt } = pool;
  const room = `pool ${id} has ${currentSize} slots: ${used} used, ${units} wanted`;
  if (!obstacle) return `${room}; it is granted at once`;
  const inTheWay = obstacle.reason === "POOL_FULL" ? room : obstacle.description;
  const until = resumeAt ? `; it goes on at ${resumeAt.toISOString()}` : "";
  return inTheWay + until + queue(ahead, obstacle.reason === "POOL_FULL" && used + units <= currentSize);
}

function queue(ahead: number, isRoom: boolean): string {
  if (ahead > 0) return `; ${ahead} ${ahead === 1 ? "waits" : "wait"} before you`;
  return isRoom ? "; those who wait for more slots are served first" : "";
}
