import { access, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { KubeConfig } from "@kubernetes/client-node";
import type { Settings } from "../../settings.ts";
import { type KubernetesClient, type KubernetesConnection, kubernetesConnection } from "./kubernetes-connection.ts";
import { readKubeconfig } from "./kubernetes-kubeconfig.ts";
import { ObservationFailed } from "../observer.ts";

/** The clusters of this installation: kubeconfigs in a folder, and the one that this process runs in. */
export interface KubernetesClusters {
  /**
   * The cluster that a tenant calls so, by the credential that is in its files now. Throws ObservationFailed when there
   * is none, or its kubeconfig can't be used.
   */
  connect(tenantId: string, name: string): Promise<ConnectedCluster>;
  /** Why a cluster that knownClusters names can't be used, as far as its files tell; undefined: it can. */
  problem(tenantId: string, name: string): Promise<string | undefined>;
}

export interface ConnectedCluster {
  /** The same for all who mean the same kubeconfig. */
  id: string;
  connection: KubernetesConnection;
}

type Folder = Pick<Settings, "CLUSTERS_DIR">;

const IN_CLUSTER = "in-cluster";
/** Where Kubernetes puts the credential of a pod's service account. */
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
const ENDINGS = [".kubeconfig", ".yaml"];
const CLUSTER_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
/** Tenants whose ids can be the name of a folder have clusters of their own. */
const TENANT_FOLDER = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

/** `root` is where the service account's folder is looked for. */
export function kubernetesClusters(folder: Folder, root = "/"): KubernetesClusters {
  const loaded = new Map<string, Loaded>();

  async function connect(tenantId: string, name: string): Promise<ConnectedCluster> {
    const file = await kubeconfigOf(folder, tenantId, name);
    if (file === undefined && name !== IN_CLUSTER) throw new ObservationFailed(`there is no cluster "${name}"`);
    const id = file ?? IN_CLUSTER;
    const known = loaded.get(id);
    if (known && known.stamp === (await stampOf(known.files))) return { id, connection: known.connection };
    const client = await import("@kubernetes/client-node");
    const { config, files } = await (file === undefined ? ownCluster(client, root) : clusterOf(client, file));
    const connection = kubernetesConnection(client, config);
    // Read after the files: what changed between is read again.
    loaded.set(id, { connection, files, stamp: await stampOf(files) });
    return { id, connection };
  }

  return {
    connect,
    problem: (tenantId, name) =>
      connect(tenantId, name).then(
        () => undefined,
        (error: unknown) => {
          if (error instanceof ObservationFailed) return error.message;
          throw error;
        },
      ),
  };
}

/**
 * The clusters that a tenant may name: `<name>.kubeconfig` and `<name>.yaml` of CLUSTERS_DIR, which all tenants share,
 * those of its folder `<tenantId>`, and `in-cluster` where this process has a service account. Sorted.
 */
export async function knownClusters({ CLUSTERS_DIR }: Folder, tenantId: string, root = "/"): Promise<string[]> {
  const folders = CLUSTERS_DIR === undefined ? [] : foldersOf(CLUSTERS_DIR, tenantId);
  const files = (await Promise.all(folders.map((each) => readdir(each).catch(() => [])))).flat();
  const names = files.flatMap((file) => {
    const ending = ENDINGS.find((each) => file.endsWith(each));
    const name = ending === undefined ? "" : file.slice(0, -ending.length);
    return CLUSTER_NAME.test(name) && name !== IN_CLUSTER ? [name] : [];
  });
  const own = (await exists(join(root, SERVICE_ACCOUNT, "token"))) ? [IN_CLUSTER] : [];
  return [...new Set([...names, ...own])].sort();
}

/** A tenant's own comes before one that all share. */
async function kubeconfigOf({ CLUSTERS_DIR }: Folder, tenantId: string, name: string): Promise<string | undefined> {
  if (CLUSTERS_DIR === undefined || name === IN_CLUSTER || !CLUSTER_NAME.test(name)) return undefined;
  for (const folder of foldersOf(CLUSTERS_DIR, tenantId)) {
    for (const ending of ENDINGS) {
      const file = join(folder, `${name}${ending}`);
      if (await exists(file)) return file;
    }
  }
  return undefined;
}

function foldersOf(folder: string, tenantId: string): string[] {
  return TENANT_FOLDER.test(tenantId) ? [join(folder, tenantId), folder] : [folder];
}

async function clusterOf(client: KubernetesClient, file: string): Promise<Source> {
  const { cluster, user, files } = await readKubeconfig(file);
  const config = new client.KubeConfig();
  config.loadFromClusterAndUser(cluster, user);
  return { config, files };
}

async function ownCluster(client: KubernetesClient, root: string): Promise<Source> {
  const files = ["token", "ca.crt"].map((file) => join(root, SERVICE_ACCOUNT, file));
  const config = new client.KubeConfig();
  config.loadFromCluster(root.replace(/\/$/, ""));
  const all = await Promise.all(files.map(exists));
  if (all.includes(false) || !URL.canParse(config.getCurrentCluster()?.server ?? "")) {
    throw new ObservationFailed("this service doesn't run in a cluster, or has no service account there");
  }
  return { config, files };
}

/** Moves when one of the files does; also when it is a link to another one, as in a mounted Secret. */
async function stampOf(files: readonly string[]): Promise<string> {
  const stats = await Promise.all(files.map((file) => stat(file).catch(() => undefined)));
  return stats.map((each) => (each ? `${each.ino}.${each.mtimeMs}.${each.size}` : "gone")).join(" ");
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}

interface Source {
  config: KubeConfig;
  files: readonly string[];
}

interface Loaded {
  connection: KubernetesConnection;
  files: readonly string[];
  stamp: string;
}
