import type { Logger } from "@runtime-cloud/service-kit/logger";
import type { KubernetesConnection } from "./kubernetes-connection.ts";
import type { Scope } from "./kubernetes-list.ts";
import { watchWorkloads } from "./kubernetes-watch.ts";
import type { WorkloadKind } from "./kubernetes-workload.ts";

/** The watches of this process. Environments that are about the same workloads share theirs. */
export interface KubernetesWatches {
  /**
   * Has the environment told of the next change, once: whoever looks again follows again. Call it before the list, so
   * that what changes meanwhile is told. Undefined when too many scopes are watched, and once closed.
   */
  follow(scope: WatchedScope, environmentId: string): Following | undefined;
  close(): Promise<void>;
}

export interface Following {
  /** Watches a kind from where its list was, unless it is watched already. */
  from(kind: WorkloadKind, resourceVersion: string): void;
}

export interface WatchedScope extends Scope {
  clusterId: string;
  reconnect(): Promise<KubernetesConnection>;
}

/** Each has three connections. */
const MAX_SCOPES = 100;
/** Nobody followed for longer than any environment's interval: it looks elsewhere, or not at all. */
const LAPSE_MS = 25 * 3_600_000;
/** Changes come in bursts: a rollout is told so often at most. */
const SETTLE_MS = 2_000;

export function kubernetesWatches({ logger, onChange, ...options }: WatchesOptions): KubernetesWatches {
  const { maxScopes = MAX_SCOPES, settleMs = SETTLE_MS, random = Math.random } = options;
  const scopes = new Map<string, ScopeWatch>();
  let closed = false;

  /** Losing it costs lateness: the interval's look comes. */
  const tell = (environmentId: string) => {
    onChange(environmentId).catch((err: unknown) => logger.warn({ err, environmentId }, "a change wasn't told"));
  };

  return {
    follow({ clusterId, ...watched }, environmentId) {
      const key = JSON.stringify([clusterId, watched.namespace, watched.labelSelector]);
      const known = scopes.get(key);
      if (closed || (!known && scopes.size >= maxScopes)) return undefined;
      const scope = known ?? new ScopeWatch({ logger, tell, lapse: () => scopes.delete(key), settleMs, random });
      scopes.set(key, scope);
      scope.follow(environmentId);
      return { from: (kind, resourceVersion) => scope.watch(kind, { ...watched, resourceVersion }) };
    },
    async close() {
      closed = true;
      await Promise.all([...scopes.values()].map((scope) => scope.close()));
      scopes.clear();
    },
  };
}

/** Who wants to hear of a scope, and its watches that run. */
class ScopeWatch {
  readonly #followers = new Set<string>();
  readonly #running = new Map<WorkloadKind, Promise<void>>();
  readonly #ending = new AbortController();
  readonly #options: ScopeOptions;
  #settling: NodeJS.Timeout | undefined;
  #lapsing: NodeJS.Timeout | undefined;

  constructor(options: ScopeOptions) {
    this.#options = options;
  }

  follow(environmentId: string): void {
    this.#followers.add(environmentId);
    clearTimeout(this.#lapsing);
    this.#lapsing = setTimeout(() => {
      this.#options.lapse();
      void this.close();
    }, LAPSE_MS).unref();
  }

  watch(kind: WorkloadKind, { namespace, labelSelector, resourceVersion, reconnect }: FromList): void {
    const { signal } = this.#ending;
    if (signal.aborted || this.#running.has(kind)) return;
    const { logger, random } = this.#options;
    const scope = { namespace, labelSelector };
    const onChange = () => this.#settle();
    const watch = watchWorkloads({ scope, kind, resourceVersion, reconnect, signal, onChange, logger, random });
    this.#running.set(
      kind,
      watch.finally(() => this.#running.delete(kind)),
    );
  }

  async close(): Promise<void> {
    clearTimeout(this.#settling);
    clearTimeout(this.#lapsing);
    this.#ending.abort();
    await Promise.all(this.#running.values());
  }

  #settle(): void {
    if (this.#ending.signal.aborted) return;
    this.#settling ??= setTimeout(() => {
      this.#settling = undefined;
      const followers = [...this.#followers];
      this.#followers.clear();
      followers.forEach(this.#options.tell);
    }, this.#options.settleMs).unref();
  }
}

type FromList = Omit<WatchedScope, "clusterId"> & { resourceVersion: string };

interface ScopeOptions {
  logger: Logger;
  tell(environmentId: string): void;
  lapse(): void;
  settleMs: number;
  random: () => number;
}

interface WatchesOptions extends Partial<Pick<ScopeOptions, "settleMs" | "random">> {
  logger: Logger;
  onChange(environmentId: string): Promise<void>;
  maxScopes?: number;
}
