import { readFileSync } from "node:fs";
import { z } from "zod";

const resourceNames = { Deployment: "deployments", StatefulSet: "statefulsets", DaemonSet: "daemonsets" } as const;

const kubeObject = z.looseObject({
  apiVersion: z.literal("apps/v1"),
  kind: z.enum(["Deployment", "StatefulSet", "DaemonSet"]),
  metadata: z.looseObject({
    name: z.string(),
    namespace: z.string(),
    labels: z.record(z.string(), z.string()),
    generation: z.int(),
    resourceVersion: z.string(),
    creationTimestamp: z.string(),
  }),
  spec: z.looseObject({ replicas: z.int().optional() }),
  status: z.record(z.string(), z.unknown()),
});

/** A workload as an API server returns it by itself: items of a list lack `apiVersion` and `kind`. */
export type KubeObject = z.output<typeof kubeObject>;
export type KubeKind = KubeObject["kind"];

/** What differs from the object in the file; labels and annotations replace those that are there. */
export interface KubeChanges {
  name?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  createdAt?: string;
  generation?: number;
  spec?: Record<string, unknown>;
  /** Instead of the status that is there. */
  status?: Record<string, unknown>;
}

/** One of the objects in test/observers/kubernetes, with changes. */
export function kubeObjectOf(kind: KubeKind, changes: KubeChanges = {}): KubeObject {
  const object = kubeObject.parse(readJson(`${kind.toLowerCase()}.json`));
  const { name, labels, annotations, createdAt, generation } = changes;
  Object.assign(object.metadata, {
    ...(name !== undefined && { name }),
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(createdAt !== undefined && { creationTimestamp: createdAt }),
    ...(generation !== undefined && { generation }),
  });
  Object.assign(object.spec, changes.spec);
  return { ...object, status: changes.status ?? object.status };
}

/** Of a Deployment, by what it is in the middle of: those that the documentation of Deployments shows. */
export function deploymentStatus(of: string): Record<string, unknown> {
  const status = z.record(z.string(), z.record(z.string(), z.unknown())).parse(readJson("deployment-statuses.json"))[
    of
  ];
  if (!status) throw new Error(`no status is called ${of}`);
  return status;
}

export function resourceOf(kind: KubeKind): string {
  return resourceNames[kind];
}

export function kindOf(resource: string): KubeKind | undefined {
  return kubeObject.shape.kind.options.find((kind) => resourceNames[kind] === resource);
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(new URL(`../observers/kubernetes/${file}`, import.meta.url), "utf8"));
}
