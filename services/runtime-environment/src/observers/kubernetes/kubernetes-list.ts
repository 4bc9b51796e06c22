import type { AppsV1Api, V1ListMeta } from "@kubernetes/client-node";
import type { KubernetesConnection } from "./kubernetes-connection.ts";
import { kubernetesFailure, statusOf } from "./kubernetes-failure.ts";
import type { Workload, WorkloadKind } from "./kubernetes-workload.ts";
import { MAX_COMPONENTS } from "../observer.ts";

/** Which workloads of a cluster an environment is about. */
export interface Scope {
  namespace: string;
  /** Empty: all of the namespace. */
  labelSelector: string;
}

/** A kind of workload in one namespace, as of one instant. */
export interface Listed {
  kind: WorkloadKind;
  workloads: readonly Workload[];
  /** There are more than were read. */
  more: boolean;
  /** From where on a watch tells what changes. */
  resourceVersion: string;
}

/** What the API server calls each kind. */
export const resources = {
  Deployment: "deployments",
  StatefulSet: "statefulsets",
  DaemonSet: "daemonsets",
} as const satisfies Record<WorkloadKind, string>;

export const workloadKinds = ["Deployment", "StatefulSet", "DaemonSet"] as const satisfies readonly WorkloadKind[];

const PAGE_SIZE = 100;
/** A server may give pages with nothing in them. */
const MAX_PAGES = 20;
const GONE = 410;

/**
 * Reads a list page by page, until it ends or has more than an observation may hold. A list that the server forgets
 * halfway is begun anew, once. Throws ObservationFailed, or the signal's reason.
 */
export async function listWorkloads(
  connection: KubernetesConnection,
  kind: WorkloadKind,
  { scope, signal }: { scope: Scope; signal: AbortSignal },
): Promise<Listed> {
  const api = connection.apps(signal);
  try {
    return await allPages(api, kind, scope).catch((error: unknown) => {
      if (statusOf(error) !== GONE) throw error;
      return allPages(api, kind, scope);
    });
  } catch (error) {
    signal.throwIfAborted();
    throw kubernetesFailure(error, { namespace: scope.namespace, resource: resources[kind] });
  }
}

async function allPages(api: AppsV1Api, kind: WorkloadKind, { namespace, labelSelector }: Scope): Promise<Listed> {
  const workloads: Workload[] = [];
  let metadata: V1ListMeta | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const page = await pageOf(api, kind, {
      namespace,
      limit: PAGE_SIZE,
      ...(labelSelector !== "" && { labelSelector }),
      ...(metadata?._continue && { _continue: metadata._continue }),
    });
    workloads.push(...page.workloads);
    metadata = page.metadata;
    if (!metadata?._continue || workloads.length > MAX_COMPONENTS) break;
  }
  if (!metadata?.resourceVersion) throw new TypeError("a list has a resourceVersion");
  return { kind, workloads, more: Boolean(metadata._continue), resourceVersion: metadata.resourceVersion };
}

async function pageOf(api: AppsV1Api, kind: WorkloadKind, page: PageRequest): Promise<Page> {
  switch (kind) {
    case "Deployment": {
      const { items, metadata } = await api.listNamespacedDeployment(page);
      return { workloads: items.map((object) => ({ kind, object })), metadata };
    }
    case "StatefulSet": {
      const { items, metadata } = await api.listNamespacedStatefulSet(page);
      return { workloads: items.map((object) => ({ kind, object })), metadata };
    }
    case "DaemonSet": {
      const { items, metadata } = await api.listNamespacedDaemonSet(page);
      return { workloads: items.map((object) => ({ kind, object })), metadata };
    }
  }
}

interface PageRequest extends Pick<Scope, "namespace"> {
  limit: number;
  labelSelector?: string;
  _continue?: string;
}

interface Page {
  workloads: readonly Workload[];
  metadata: V1ListMeta | undefined;
}
