import type { V1Deployment, V1DeploymentCondition, V1StatefulSet } from "@kubernetes/client-node";
import type { Health } from "../../../generated/prisma/client.ts";
import { type Judgement, readyReplicas } from "../../inventory/health.ts";
import { replicasOf, type Workload } from "./kubernetes-workload.ts";

/**
 * A workload's health, as `kubectl rollout status` and Argo CD judge it, with one difference: they wait for pods, so to
 * them a workload that lost some is progressing for ever. Here a rollout is PROGRESSING; what is short of pods outside
 * of one is DEGRADED. StatefulSets and DaemonSets don't say whether they roll out, so the pods that don't exist yet, or
 * have an old revision, stand for it.
 */
export function workloadHealth(workload: Workload): Judgement {
  const { metadata, status } = workload.object;
  const because = (health: Health, reason: string): Judgement => {
    return { health, healthReason: `${workload.kind} ${metadata?.name ?? ""}: ${reason}` };
  };
  // Its status is about an older spec then.
  if ((status?.observedGeneration ?? 0) < (metadata?.generation ?? 0)) {
    return because("PROGRESSING", "its controller hasn't seen its newest spec yet");
  }
  const failure = workload.kind === "Deployment" ? failureOf(workload.object) : undefined;
  if (failure !== undefined) return because("DEGRADED", failure);
  if (isPaused(workload)) return because("PROGRESSING", "its rollout is paused");
  const { desired, ready } = replicasOf(workload);
  if (desired === 0) return HEALTHY;
  const replicas = readyReplicas({ replicasDesired: desired, replicasReady: ready });
  if (isRollingOut(workload)) return because("PROGRESSING", `it rolls out, ${replicas}`);
  if (ready < desired) return because("DEGRADED", replicas);
  return isUnavailable(workload) ? because("DEGRADED", "it has too few pods that stay ready") : HEALTHY;
}

const HEALTHY: Judgement = { health: "HEALTHY", healthReason: null };

/** The conditions' own texts may quote what pods are made of, so they aren't told. */
function failureOf(deployment: V1Deployment): string | undefined {
  if (condition(deployment, "ReplicaFailure")?.status === "True") return "its pods can't be created (ReplicaFailure)";
  if (condition(deployment, "Progressing")?.reason !== DEADLINE_EXCEEDED) return undefined;
  return `its rollout takes too long (${DEADLINE_EXCEEDED})`;
}

function isPaused({ kind, object }: Workload): boolean {
  return kind === "Deployment" && object.spec?.paused === true;
}

function isRollingOut(workload: Workload): boolean {
  switch (workload.kind) {
    case "Deployment":
      return isDeploymentRollingOut(workload.object);
    case "StatefulSet":
      return isStatefulSetRollingOut(workload.object);
    case "DaemonSet": {
      const { spec, status } = workload.object;
      const desired = status?.desiredNumberScheduled ?? 0;
      if ((status?.currentNumberScheduled ?? 0) < desired) return true;
      return spec?.updateStrategy?.type !== ON_DELETE && (status?.updatedNumberScheduled ?? 0) < desired;
    }
  }
}

function isDeploymentRollingOut(deployment: V1Deployment): boolean {
  const { desired } = replicasOf({ kind: "Deployment", object: deployment });
  const updated = deployment.status?.updatedReplicas ?? 0;
  const available = deployment.status?.availableReplicas ?? 0;
  if (updated < desired || (deployment.status?.replicas ?? 0) > updated) return true;
  const progressing = condition(deployment, "Progressing");
  // Without a progress deadline there is no such condition.
  return available < desired && progressing !== undefined && progressing.reason !== ROLLED_OUT;
}

function isStatefulSetRollingOut({ spec, status }: V1StatefulSet): boolean {
  const desired = spec?.replicas ?? 1;
  if ((status?.replicas ?? 0) < desired) return true;
  if (spec?.updateStrategy?.type === ON_DELETE) return false;
  const partition = spec?.updateStrategy?.rollingUpdate?.partition ?? 0;
  if (partition > 0) return (status?.updatedReplicas ?? 0) < desired - partition;
  return status?.updateRevision !== status?.currentRevision;
}

/** Ready is what replicas are counted by; a Deployment wants its pods to have been ready for a while. */
function isUnavailable({ kind, object }: Workload): boolean {
  return kind === "Deployment" && condition(object, "Available")?.status === "False";
}

function condition({ status }: V1Deployment, type: string): V1DeploymentCondition | undefined {
  return status?.conditions?.find((each) => each.type === type);
}

const DEADLINE_EXCEEDED = "ProgressDeadlineExceeded";
/** The reason of a Deployment's Progressing condition once its rollout is done; scaling doesn't move it. */
const ROLLED_OUT = "NewReplicaSetAvailable";
const ON_DELETE = "OnDelete";
