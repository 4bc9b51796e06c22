import { loadYaml, type V1DaemonSet, type V1Deployment, type V1StatefulSet } from "@kubernetes/client-node";
import { describe, expect, test } from "@jest/globals";
import { workloadHealth } from "@runtime-cloud/runtime-environment/observers/kubernetes/kubernetes-health";
import { replicasOf, type Workload } from "@runtime-cloud/runtime-environment/observers/kubernetes/kubernetes-workload";
import { z } from "zod";
import { deploymentStatus, kubeObjectOf, type KubeChanges, type KubeKind } from "../_support/kube-objects.ts";

describe("a Deployment", () => {
  test("is healthy when all of its pods are new and available", () => {
    expect(healthOf("Deployment")).toBe("HEALTHY");
    expect(replicasOf(workload("Deployment"))).toEqual({ desired: 3, ready: 3 });
  });

  test("is progressing until its controller has seen the newest spec, whatever its status says", () => {
    expect(healthOf("Deployment", { generation: 5 })).toBe("PROGRESSING");
    expect(healthOf("Deployment", { status: {} })).toBe("PROGRESSING");
    const failed = { generation: 5, status: deploymentStatus("deadlineExceeded") };
    expect(healthOf("Deployment", failed)).toBe("PROGRESSING");
  });

  test("is progressing while pods of the last revision are replaced, or start", () => {
    expect(healthOf("Deployment", { status: deploymentStatus("rollingOut") })).toBe("PROGRESSING");
    expect(healthOf("Deployment", { status: deploymentStatus("starting") })).toBe("PROGRESSING");
    const lastOnesEnd = { ...deploymentStatus("rollingOut"), updatedReplicas: 3, availableReplicas: 3 };
    expect(healthOf("Deployment", { status: lastOnesEnd })).toBe("PROGRESSING");
  });

  test("is degraded when its rollout took too long", () => {
    expect(healthOf("Deployment", { status: deploymentStatus("deadlineExceeded") })).toBe("DEGRADED");
  });

  test("is degraded when its pods can't be created, as over a quota", () => {
    expect(healthOf("Deployment", { status: deploymentStatus("quotaExceeded") })).toBe("DEGRADED");
  });

  test("is degraded when it loses pods after its rollout, though it still has its minimum", () => {
    const status = deploymentStatus("podsLost");
    expect(healthOf("Deployment", { status })).toBe("DEGRADED");
    const oneLost = { ...status, readyReplicas: 2, availableReplicas: 2, conditions: healthyConditions() };
    expect(healthOf("Deployment", { status: oneLost })).toBe("DEGRADED");
    expect(replicasOf(workload("Deployment", { status: oneLost }))).toEqual({ desired: 3, ready: 2 });
  });

  test("is degraded while it is short of available pods, when no deadline tells whether it rolls out", () => {
    const [available] = healthyConditions();
    const status = { ...deploymentStatus("podsLost"), conditions: [{ ...available, status: "False" }] };
    expect(healthOf("Deployment", { status })).toBe("DEGRADED");
  });

  test("is progressing while it is paused, unless it has failed", () => {
    const spec = { paused: true };
    expect(healthOf("Deployment", { spec })).toBe("PROGRESSING");
    expect(healthOf("Deployment", { spec, status: deploymentStatus("deadlineExceeded") })).toBe("DEGRADED");
  });

  test("is healthy with none when none are wanted", () => {
    const none = { spec: { replicas: 0 }, status: { observedGeneration: 4 } };
    expect(healthOf("Deployment", none)).toBe("HEALTHY");
    expect(replicasOf(workload("Deployment", none))).toEqual({ desired: 0, ready: 0 });
  });
});

describe("a StatefulSet", () => {
  const ready = kubeObjectOf("StatefulSet").status;

  test("is healthy when all of its pods are ready", () => {
    expect(healthOf("StatefulSet")).toBe("HEALTHY");
  });

  test("is progressing while pods of the last revision are replaced", () => {
    const status = { ...ready, updatedReplicas: 1, updateRevision: "shop-database-5f6d8c7b9" };
    expect(healthOf("StatefulSet", { status })).toBe("PROGRESSING");
  });

  test("is progressing while pods don't exist yet, one after the other", () => {
    expect(healthOf("StatefulSet", { status: { ...ready, replicas: 1, readyReplicas: 1 } })).toBe("PROGRESSING");
    expect(healthOf("StatefulSet", { status: {} })).toBe("PROGRESSING");
  });

  test("is degraded when a pod that exists isn't ready, outside of a rollout", () => {
    expect(healthOf("StatefulSet", { status: { ...ready, readyReplicas: 1 } })).toBe("DEGRADED");
  });

  test("is done with a rollout in part when the pods above the partition are new", () => {
    const spec = { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } };
    const status = { ...ready, updateRevision: "shop-database-5f6d8c7b9" };
    expect(healthOf("StatefulSet", { spec, status: { ...status, updatedReplicas: 0 } })).toBe("PROGRESSING");
    expect(healthOf("StatefulSet", { spec, status: { ...status, updatedReplicas: 1 } })).toBe("HEALTHY");
  });

  test("that waits for its pods to be deleted is healthy with the old ones", () => {
    const spec = { updateStrategy: { type: "OnDelete" } };
    const status = { ...ready, updatedReplicas: 0, updateRevision: "shop-database-5f6d8c7b9" };
    expect(healthOf("StatefulSet", { spec, status })).toBe("HEALTHY");
  });
});

describe("a DaemonSet", () => {
  const ready = kubeObjectOf("DaemonSet").status;

  test("is healthy with a ready pod on each node that it selects", () => {
    expect(healthOf("DaemonSet")).toBe("HEALTHY");
    expect(replicasOf(workload("DaemonSet"))).toEqual({ desired: 4, ready: 4 });
  });

  test("is progressing while nodes wait for their pod, or for the new one", () => {
    expect(healthOf("DaemonSet", { status: { ...ready, currentNumberScheduled: 3 } })).toBe("PROGRESSING");
    expect(healthOf("DaemonSet", { status: { ...ready, updatedNumberScheduled: 1 } })).toBe("PROGRESSING");
    expect(healthOf("DaemonSet", { generation: 2 })).toBe("PROGRESSING");
  });

  test("is degraded when a node's pod isn't ready", () => {
    expect(healthOf("DaemonSet", { status: { ...ready, numberReady: 3, numberUnavailable: 1 } })).toBe("DEGRADED");
  });

  test("that waits for its pods to be deleted is healthy with the old ones", () => {
    const spec = { updateStrategy: { type: "OnDelete" } };
    expect(healthOf("DaemonSet", { spec, status: { ...ready, updatedNumberScheduled: 0 } })).toBe("HEALTHY");
  });

  test("is healthy with none where no node is selected", () => {
    expect(healthOf("DaemonSet", { status: { observedGeneration: 1, desiredNumberScheduled: 0 } })).toBe("HEALTHY");
  });
});

test("what isn't healthy says which workload, and what is the matter with it", () => {
  const why = (kind: KubeKind, changes: KubeChanges = {}) => workloadHealth(workload(kind, changes)).healthReason;
  expect(why("Deployment")).toBeNull();
  expect(why("Deployment", { generation: 5 })).toBe(
    "Deployment shop-web: its controller hasn't seen its newest spec yet",
  );
  const status = { ...deploymentStatus("podsLost"), readyReplicas: 1, conditions: healthyConditions() };
  expect(why("Deployment", { status })).toBe("Deployment shop-web: 1 of 3 replicas ready");
  expect(why("Deployment", { status: deploymentStatus("deadlineExceeded") })).toBe(
    "Deployment shop-web: its rollout takes too long (ProgressDeadlineExceeded)",
  );
  expect(why("Deployment", { status: deploymentStatus("quotaExceeded") })).toBe(
    "Deployment shop-web: its pods can't be created (ReplicaFailure)",
  );
  expect(why("Deployment", { spec: { paused: true } })).toBe("Deployment shop-web: its rollout is paused");
});

function healthOf(kind: KubeKind, changes: KubeChanges = {}) {
  return workloadHealth(workload(kind, changes)).health;
}

/** As the client reads it. */
function workload(kind: KubeKind, changes: KubeChanges = {}): Workload {
  const text = JSON.stringify(kubeObjectOf(kind, changes));
  switch (kind) {
    case "Deployment":
      return { kind, object: loadYaml<V1Deployment>(text) };
    case "StatefulSet":
      return { kind, object: loadYaml<V1StatefulSet>(text) };
    case "DaemonSet":
      return { kind, object: loadYaml<V1DaemonSet>(text) };
  }
}

function healthyConditions(): Record<string, unknown>[] {
  return z.array(z.record(z.string(), z.unknown())).parse(kubeObjectOf("Deployment").status["conditions"]);
}
