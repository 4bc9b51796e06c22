import type { Logger } from "@runtime-cloud/service-kit/logger";
import type { Settings } from "../../settings.ts";
import { kubernetesClusters, type KubernetesClusters } from "./kubernetes-clusters.ts";
import { kubernetesWatches, type KubernetesWatches } from "./kubernetes-watches.ts";

/** This process's way to clusters, which all looks share. Nothing connects before the first look. */
export interface KubernetesAccess {
  clusters: KubernetesClusters;
  watches: KubernetesWatches;
  close(): Promise<void>;
}

/** `onChange` has an environment looked at soon: something moved in what it last saw. */
export function kubernetesAccess({ settings, logger, onChange }: AccessOptions): KubernetesAccess {
  const watches = kubernetesWatches({ logger, onChange });
  return { clusters: kubernetesClusters(settings), watches, close: () => watches.close() };
}

interface AccessOptions {
  settings: Pick<Settings, "CLUSTERS_DIR">;
  logger: Logger;
  onChange(environmentId: string): Promise<void>;
}
