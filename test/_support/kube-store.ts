import type { KubeKind, KubeObject } from "./kube-objects.ts";
import { expiredContinue, type KubeStatus } from "./kube-status.ts";

/** What etcd is to an API server: objects, and what became of them since. */
export interface KubeStore {
  /** Creates an object, or replaces the one of its kind and name. */
  put(...objects: KubeObject[]): void;
  remove(kind: KubeKind, name: string): void;
  clear(): void;
  /** One page of what a request is about, or why there is none. */
  list(concerns: (object: KubeObject) => boolean, query: URLSearchParams): KubeList | KubeStatus;
  /** Every token of a list that was begun is worth nothing from now on. */
  expireLists(): void;
  readonly resourceVersion: number;
  /** What happened after a resource version, in order; undefined when that is forgotten. */
  since(resourceVersion: number): readonly KubeEvent[] | undefined;
  /** Forgets what happened. */
  compact(): void;
  /** Called with each event. */
  onEvent(listener: (event: KubeEvent) => void): void;
}

export interface KubeEvent {
  type: "ADDED" | "MODIFIED" | "DELETED";
  resourceVersion: number;
  object: KubeObject;
}

export interface KubeList {
  resourceVersion: string;
  continue?: string;
  remainingItemCount?: number;
  items: readonly KubeObject[];
}

/** Clusters count up from somewhere. */
const FIRST_VERSION = 48_300;

export function kubeStore(): KubeStore {
  const objects = new Map<string, KubeObject>();
  const listeners: ((event: KubeEvent) => void)[] = [];
  const snapshots = new Map<string, Snapshot>();
  let events: KubeEvent[] = [];
  let version = FIRST_VERSION;
  let compacted = FIRST_VERSION;
  let tokens = 0;

  const happened = (type: KubeEvent["type"], given: KubeObject) => {
    version += 1;
    const object = { ...given, metadata: { ...given.metadata, resourceVersion: String(version) } };
    const event = { type, resourceVersion: version, object };
    events.push(event);
    for (const listener of listeners) listener(event);
    return object;
  };

  return {
    put(...given) {
      for (const object of given) {
        const key = keyOf(object.kind, object.metadata.name);
        objects.set(key, happened(objects.has(key) ? "MODIFIED" : "ADDED", object));
      }
    },
    remove(kind, name) {
      const key = keyOf(kind, name);
      const object = objects.get(key);
      if (!object) throw new Error(`there is no ${key}`);
      objects.delete(key);
      happened("DELETED", object);
    },
    clear() {
      for (const { kind, metadata } of [...objects.values()]) this.remove(kind, metadata.name);
    },
    list(concerns, query) {
      const token = query.get("continue");
      const snapshot = token === null ? snapshotOf(objects, concerns, version) : snapshots.get(token);
      if (!snapshot) return expiredContinue;
      const limit = Number(query.get("limit") ?? 0) || snapshot.items.length;
      const rest = { ...snapshot, items: snapshot.items.slice(limit) };
      const page = { resourceVersion: String(snapshot.version), items: snapshot.items.slice(0, limit) };
      if (rest.items.length === 0) return page;
      const next = Buffer.from(`${snapshot.version}/${(tokens += 1)}`).toString("base64url");
      snapshots.set(next, rest);
      return { ...page, continue: next, remainingItemCount: rest.items.length };
    },
    expireLists: () => snapshots.clear(),
    get resourceVersion() {
      return version;
    },
    since: (from) => (from < compacted ? undefined : events.filter(({ resourceVersion }) => resourceVersion > from)),
    compact() {
      compacted = version;
      events = [];
    },
    onEvent: (listener) => void listeners.push(listener),
  };
}

/** In the order of etcd's keys. A list goes on with what it began with. */
function snapshotOf(
  objects: ReadonlyMap<string, KubeObject>,
  concerns: (object: KubeObject) => boolean,
  version: number,
) {
  const items = [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  return { items: items.filter(concerns), version };
}

function keyOf(kind: KubeKind, name: string): string {
  return `${kind}/${name}`;
}

interface Snapshot {
  items: readonly KubeObject[];
  version: number;
}
