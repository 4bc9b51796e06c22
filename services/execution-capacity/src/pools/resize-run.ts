import type { MessageShape } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import { MalformedEvent } from "@runtime-cloud/contracts/events/cloud-event";
import type { ProvisioningRunSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import { RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { Provisioning } from "../context.ts";
import { provisionedSizes } from "./pool-provisioned.ts";
import type { ResizeStep } from "./resize-step.ts";

type Run = MessageShape<typeof ProvisioningRunSchema>;

/** The pool that a run is to size. */
export interface Resized {
  id: string;
  generation: number;
}

/** How long ProvisioningApplied may take to come. After that its size is read from the run. */
export const EVENT_GRACE_MS = 60_000;

/**
 * Looks how the run of a pool's wanted size is doing: no event tells this service that a run has failed. `now` is the
 * database's.
 */
export async function followResize(
  { rpc }: Provisioning,
  pool: Resized,
  provisioningRunId: string,
  now: Date,
  options: CallOptions,
): Promise<ResizeStep> {
  try {
    const { run } = await rpc.getProvisioningRun({ provisioningRunId }, options);
    return run ? stepOf(run, pool, now) : { kind: "under-way" };
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    if (error.code !== Code.NotFound) return { kind: "unanswered", error };
    return { kind: "failed", reason: `run ${provisioningRunId} is unknown to IaCProvisioningService` };
  }
}

function stepOf(run: Run, pool: Resized, now: Date): ResizeStep {
  const { provisioningRunId: id, state, reason } = run;
  if (state === RunState.APPLIED) return run.endedAt && isRecent(run.endedAt, now) ? underWay : appliedStep(run, pool);
  if (!failures.includes(state)) return underWay;
  return { kind: "failed", reason: `run ${id} is ${RunState[state]}${reason ? `: ${reason}` : ""}` };
}

const underWay: ResizeStep = { kind: "under-way" };

/** Ends that bring no size. What an operator RESOLVED may have sized the pool in part; setting its size asks anew. */
const failures: readonly RunState[] = [
  RunState.PLANNED,
  RunState.PARTIALLY_APPLIED,
  RunState.FAILED,
  RunState.REJECTED,
  RunState.EXPIRED,
  RunState.SUPERSEDED,
  RunState.CANCELLED,
  RunState.RESOLVED,
];

function isRecent(endedAt: NonNullable<Run["endedAt"]>, now: Date): boolean {
  return now.getTime() - timestampMs(endedAt) < EVENT_GRACE_MS;
}

function appliedStep({ provisioningRunId, outputs }: Run, { id, generation }: Resized): ResizeStep {
  try {
    const size = provisionedSizes(outputs).find((told) => told.poolId === id && told.generation === generation);
    if (size) return { kind: "applied", size };
    const reason = `run ${provisioningRunId} is APPLIED, but tells no size of generation ${generation} for pool ${id}`;
    return { kind: "failed", reason };
  } catch (error) {
    if (!(error instanceof MalformedEvent)) throw error;
    return { kind: "failed", reason: `run ${provisioningRunId} is APPLIED, but ${error.message}` };
  }
}
