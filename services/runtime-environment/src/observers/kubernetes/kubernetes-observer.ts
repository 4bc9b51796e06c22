import type { Clock } from "@runtime-cloud/service-kit/clock";
import type { KubernetesAccess } from "./kubernetes-access.ts";
import { componentsOf } from "./kubernetes-components.ts";
import type { KubernetesConnection } from "./kubernetes-connection.ts";
import { statusOf } from "./kubernetes-failure.ts";
import { type Listed, listWorkloads, workloadKinds } from "./kubernetes-list.ts";
import { MAX_COMPONENTS, type Observation, ObservationFailed, type Observer } from "../observer.ts";
import type { KubernetesSettings } from "../observer-settings.ts";
import { withinTime } from "../within-time.ts";

/**
 * Sees the Deployments, StatefulSets and DaemonSets of a namespace, each as a component. When one of them changes the
 * environment is looked at again, as far as watches allow it.
 */
export function kubernetesObserver({ clock, kubernetes }: Observing, settings: KubernetesSettings): Observer {
  const { cluster, ...scope } = settings;
  return {
    name: "kubernetes",
    async observe({ id: environmentId, tenantId }, look) {
      const at = clock.now();
      return withinTime(look, async (signal) => {
        signal.throwIfAborted();
        const { id: clusterId, connection } = await kubernetes.clusters.connect(tenantId, cluster);
        const reconnect = async () => (await kubernetes.clusters.connect(tenantId, cluster)).connection;
        // Before the lists: what changes while they are read is heard of.
        const following = kubernetes.watches.follow({ clusterId, ...scope, reconnect }, environmentId);
        const answers = await Promise.all(
          workloadKinds.map((kind) => listWorkloads(connection, kind, { scope, signal }).catch(failureIn)),
        );
        const lists = answers.filter((answer) => "workloads" in answer);
        for (const { kind, resourceVersion } of lists) following?.from(kind, resourceVersion);

        const failures = answers.filter((answer) => answer instanceof ObservationFailed);
        const seen = observationOf(lists, failures, scope.namespace);
        if (!seen.failure && seen.components.length === 0) await refuseMissing(connection, scope.namespace, signal);
        return { at, ...seen };
      });
    },
  };
}

/** Kinds that couldn't be listed may still be there, and so may whatever is too much. */
function observationOf(
  lists: readonly Listed[],
  failures: readonly ObservationFailed[],
  namespace: string,
): Omit<Observation, "at"> {
  const texts = [...new Set(failures.map(({ message }) => message))];
  if (lists.length === 0) throw new ObservationFailed(texts.join("; "));
  const workloads = lists.flatMap((list) => list.workloads);
  if (workloads.length > MAX_COMPONENTS || lists.some(({ more }) => more)) {
    texts.push(`namespace ${namespace} has more than ${MAX_COMPONENTS} workloads: choose some by a label selector`);
  }
  const components = componentsOf(workloads.slice(0, MAX_COMPONENTS));
  return { components, ...(texts.length > 0 && { failure: texts.join("; ") }) };
}

function failureIn(error: unknown): ObservationFailed {
  if (error instanceof ObservationFailed) return error;
  throw error;
}

const NOT_FOUND = 404;

/** The API server lists a namespace that doesn't exist as one where nothing is. Who may not ask can't tell. */
async function refuseMissing(connection: KubernetesConnection, name: string, signal: AbortSignal): Promise<void> {
  const missing = await connection
    .core(signal)
    .readNamespace({ name })
    .then(
      () => false,
      (error: unknown) => statusOf(error) === NOT_FOUND,
    );
  signal.throwIfAborted();
  if (missing) throw new ObservationFailed(`the cluster has no namespace ${name}`);
}

interface Observing {
  clock: Clock;
  kubernetes: KubernetesAccess;
}
