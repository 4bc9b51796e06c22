import type { V1DaemonSet, V1Deployment, V1StatefulSet } from "@kubernetes/client-node";

/** What keeps a component's pods running. Items of a list don't say themselves what they are. */
export type Workload =
  | { kind: "Deployment"; object: V1Deployment }
  | { kind: "StatefulSet"; object: V1StatefulSet }
  | { kind: "DaemonSet"; object: V1DaemonSet };

export type WorkloadKind = Workload["kind"];

export interface Replicas {
  desired: number;
  ready: number;
}

/** How many pods there should be, and how many are ready. A DaemonSet wants one on each node that it selects. */
export function replicasOf(workload: Workload): Replicas {
  if (workload.kind === "DaemonSet") {
    const { status } = workload.object;
    return { desired: countOf(status?.desiredNumberScheduled), ready: countOf(status?.numberReady) };
  }
  const { spec, status } = workload.object;
  // The API server fills `replicas` in: an object without it means 1.
  return { desired: countOf(spec?.replicas ?? 1), ready: countOf(status?.readyReplicas) };
}

const MAX_INT32 = 2_147_483_647;

/** The client checks no types: what isn't a count counts as none. */
function countOf(value: number | undefined): number {
  return value !== undefined && Number.isInteger(value) && value >= 0 && value <= MAX_INT32 ? value : 0;
}
