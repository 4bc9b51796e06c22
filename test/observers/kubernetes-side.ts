import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KubernetesAccess } from "@runtime-cloud/runtime-environment/observers/kubernetes/kubernetes-access";
import { kubernetesClusters } from "@runtime-cloud/runtime-environment/observers/kubernetes/kubernetes-clusters";
import { kubernetesObserver } from "@runtime-cloud/runtime-environment/observers/kubernetes/kubernetes-observer";
import type { Observation, Observer } from "@runtime-cloud/runtime-environment/observers/observer";
import { kubernetesWatches } from "@runtime-cloud/runtime-environment/observers/kubernetes/kubernetes-watches";
import { deadlineCause } from "@runtime-cloud/eventing/cause";
import { until } from "@runtime-cloud/local-servers/until";
import { type Clock, systemClock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import { type KubeServer, startKubeServer } from "../_support/kube-server.ts";

/** A cluster called `main`, a service's way to it, and what that service logs and is told. */
export interface KubernetesSide {
  server: KubeServer;
  /** The folder of kubeconfigs. */
  folder: string;
  kubernetes: KubernetesAccess;
  /** Environments that were told of a change, in order. */
  told: string[];
  /** Lines of the service's log. */
  logged: string[];
  observer(labelSelector?: string, clock?: Clock): Observer;
  look(environmentId?: string, limits?: { timeoutMs?: number; signal?: AbortSignal }): Promise<Observation>;
  /** Resolves when so many watches are open. */
  watched(count: number): Promise<void>;
  close(): Promise<void>;
}

/** How long a condition may take to come true. */
const PATIENCE_MS = 10_000;

export async function startKubernetesSide(options: { maxScopes?: number } = {}): Promise<KubernetesSide> {
  const server = await startKubeServer();
  const folder = await mkdtemp(join(tmpdir(), "clusters-"));
  await writeFile(join(folder, "main.kubeconfig"), server.kubeconfig());
  const told: string[] = [];
  const logged: string[] = [];
  const destination = { write: (line: string) => void logged.push(line) };
  const logger = createLogger({ service: "test", level: "debug", destination });
  const onChange = async (environmentId: string) => void told.push(environmentId);
  // Without jitter pauses are as short as they get.
  const watches = kubernetesWatches({ logger, onChange, settleMs: 20, random: () => 1, ...options });
  const clusters = kubernetesClusters({ CLUSTERS_DIR: folder }, folder);
  const kubernetes = { clusters, watches, close: () => watches.close() };
  // Loads the client, which Jest takes seconds for.
  await clusters.connect("tenant-1", "main");

  const observer = (labelSelector = "", clock = systemClock) =>
    kubernetesObserver({ clock, kubernetes }, { cluster: "main", namespace: "shop", labelSelector });
  return {
    server,
    folder,
    kubernetes,
    told,
    logged,
    observer,
    look: (environmentId = "environment-1", limits = {}) =>
      observer().observe(
        { id: environmentId, tenantId: "tenant-1" },
        { cause: deadlineCause("observation", uuidv7), timeoutMs: 10_000, ...limits },
      ),
    watched: async (count) =>
      until(`${count} open watches`, PATIENCE_MS, () => (server.watches.open === count ? true : undefined)).then(
        () => undefined,
      ),
    async close() {
      await kubernetes.close();
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
