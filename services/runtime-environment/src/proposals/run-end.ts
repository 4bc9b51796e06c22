import type { ProvisioningRun } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import { RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";

/** How a run ended for whoever asked for it. */
export type RunEnd = { applied: true } | { applied: false; reason: string };

const unapplied: ReadonlySet<RunState> = new Set([
  RunState.PLANNED,
  RunState.PARTIALLY_APPLIED,
  RunState.FAILED,
  RunState.REJECTED,
  RunState.EXPIRED,
  RunState.SUPERSEDED,
  RunState.CANCELLED,
  RunState.INDETERMINATE,
  RunState.RESOLVED,
]);

/** How a run ended, or undefined while it is under way. One without a known result counts as not applied. */
export function endOf({ provisioningRunId, state, reason }: ProvisioningRun): RunEnd | undefined {
  if (state === RunState.APPLIED) return { applied: true };
  if (!unapplied.has(state)) return undefined;
  const why = reason ?? `run ${provisioningRunId} is ${RunState[state]}`;
  if (state !== RunState.INDETERMINATE) return { applied: false, reason: why };
  const wayOut = `nobody knows what run ${provisioningRunId} did: see GetRecoveryManifest, and end it by ResolveIndeterminate`;
  return { applied: false, reason: `${why}; ${wayOut}` };
}
