import type { JsonObject } from "@bufbuild/protobuf";
import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import {
  ProvisioningKind,
  RunMode,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { WorkerPool } from "../../generated/prisma/client.ts";
import type { Provisioning } from "../context.ts";
import type { ResizeStep } from "./resize-step.ts";

/**
 * Has IaCProvisioningService plan a pool's wanted size. The same calls with the same keys, however often: it declares and
 * plans once.
 */
export async function requestResize(
  { rpc }: Provisioning,
  pool: WorkerPool,
  options: CallOptions,
): Promise<ResizeStep> {
  const { id, environmentId, programVersion, generation } = pool;
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
    const { run } = await rpc.planProvisioning(
      {
        specificationId: specification?.specificationId ?? "",
        kind: ProvisioningKind.POOL_RESIZE,
        mode: RunMode.APPLY,
        idempotencyKey,
      },
      options,
    );
    return { kind: "planned", runId: run?.provisioningRunId ?? null };
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    return definitive.includes(error.code) ? { kind: "failed", reason: error.message } : { kind: "unanswered", error };
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
