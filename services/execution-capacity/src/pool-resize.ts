import type { JsonObject } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  ProvisioningKind,
  RunMode,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { type Cause, deadlineCause } from "@runtime-cloud/eventing/cause";
import { continuedCause } from "@runtime-cloud/eventing/continued-cause";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import { callFor } from "@runtime-cloud/eventing/peer";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { DEFAULT_DEADLINE_MS } from "@runtime-cloud/service-kit/call-limits";
import { decide } from "@runtime-cloud/state-machines/decide";
import { workerPool } from "@runtime-cloud/state-machines/worker-pool";
import type { WorkerPool } from "../generated/prisma/client.ts";
import { lockCapacity } from "./capacity-lock.ts";
import type { Context, Provisioning, ServiceUnit, Wakes } from "./context.ts";
import { advancePool, ownPool } from "./worker-pool.ts";

const KIND = "pool-resize";
const SWEEP_EVERY_MS = 5_000;
/** When IaCProvisioningService is asked again that didn't answer. */
const RETRY_MS = 5_000;
const MAX_NOTE = 1_000;

/** Asks IaCProvisioningService for the wanted sizes of elastic pools, each until it answers. */
export function poolResize(context: Context): Deadline {
  const { client, provisioning, logger } = context;
  return {
    kind: KIND,
    sweepEveryMs: SWEEP_EVERY_MS,
    async run() {
      const now = await transactionNow(client);
      const pool = await client.workerPool.findFirst({
        where: { resizeDueAt: { lte: now } },
        orderBy: { resizeDueAt: "asc" },
      });
      if (!pool) return { ended: [] };
      const cause = await resizeCause(context, pool);
      const answer = await ask(provisioning, pool, cause);
      if (answer.kind === "unanswered") logger.warn({ err: answer.error, poolId: pool.id }, "pool resize not answered");
      await unitOfWork(context, cause, (unit) => record(context, unit, pool, answer));
      return { ended: answer.kind === "unanswered" ? [] : [pool.id], more: true };
    },
  };
}

/** Whoever asked for the size goes on in what is declared and planned for it. */
async function resizeCause({ client, newId }: Context, { tenantId, id }: WorkerPool): Promise<Cause> {
  const asked = { tenantId, aggregate: workerPool.id, id, event: "requestSize" };
  return (await continuedCause(client, asked, `deadline:${KIND}`)) ?? deadlineCause(KIND, newId);
}

type Answer = { kind: "accepted" } | { kind: "refused"; reason: string } | { kind: "unanswered"; error: ConnectError };

/** The same calls with the same keys, however often: IaCProvisioningService declares and plans once. */
async function ask({ rpc }: Provisioning, pool: WorkerPool, cause: Cause): Promise<Answer> {
  const { id, tenantId, environmentId, programVersion, generation } = pool;
  const options = callFor(tenantId, cause, { timeoutMs: DEFAULT_DEADLINE_MS });
  const idempotencyKey = `pool-${id}-${generation}`;
  try {
    const { specification } = await rpc.declareSpecification(
      {
        environmentId: environmentId ?? "",
        kind: SpecificationKind.WORKER_POOL,
        programVersion: programVersion ?? "",
        parameters: parametersOf(pool),
        idempotencyKey,
      },
      options,
    );
    await rpc.planProvisioning(
      {
        specificationId: specification?.specificationId ?? "",
        kind: ProvisioningKind.POOL_RESIZE,
        mode: RunMode.APPLY,
        idempotencyKey,
      },
      options,
    );
    return { kind: "accepted" };
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    if (!definitive.includes(error.code)) return { kind: "unanswered", error };
    return { kind: "refused", reason: error.message.slice(0, MAX_NOTE) };
  }
}

/** What a pool's program takes; `examples/programs/worker-pool` is one. */
function parametersOf({ id, desiredSize, generation }: WorkerPool): JsonObject {
  return { pool_id: id, size: desiredSize, generation };
}

/** Codes that the same request would get again. */
const definitive: readonly Code[] = [
  Code.InvalidArgument,
  Code.NotFound,
  Code.AlreadyExists,
  Code.PermissionDenied,
  Code.FailedPrecondition,
  Code.OutOfRange,
  Code.Unimplemented,
];

async function record(context: Wakes, unit: ServiceUnit, asked: WorkerPool, answer: Answer): Promise<void> {
  const { tenantId, id, generation } = asked;
  const { now } = await lockCapacity(context, unit, { scopes: [], pools: [asked] });
  const pool = await ownPool(unit.tx, tenantId, id);
  // Another size is wanted meanwhile, and is due by itself.
  if (pool.generation !== generation) return;
  const resizeDueAt = answer.kind === "unanswered" ? new Date(now.getTime() + RETRY_MS) : null;
  await unit.tx.workerPool.update({ where: { tenantId_id: { tenantId, id } }, data: { resizeDueAt } });
  if (answer.kind !== "refused") return;
  const event = { type: "failProvisioning", reason: answer.reason, generation } as const;
  if (decide(workerPool, pool, event).accepted) await advancePool(unit, pool, event);
}
