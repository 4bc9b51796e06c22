import type { ServerResponse } from "node:http";
import type { KubeKind, KubeObject } from "./kube-objects.ts";
import { type KubeStatus, statusObject, tooOld } from "./kube-status.ts";
import type { KubeEvent, KubeStore } from "./kube-store.ts";

/** The watches that an API server serves: a line of JSON for each event. */
export interface KubeWatches {
  serve(
    kind: KubeKind,
    concerns: (object: KubeObject) => boolean,
    query: URLSearchParams,
    response: ServerResponse,
  ): void;
  /** How many are open. */
  readonly open: number;
  /** Tells each where it stands, as a server does once a minute. */
  bookmark(): void;
  /** Ends each with an ERROR event, as a server does whose cache has moved on. */
  fail(status: KubeStatus): void;
  /** Ends each in good order, as a server does after `timeoutSeconds`. */
  end(): void;
  /** Cuts each, in the middle of a line. */
  cut(): void;
}

export function kubeWatches(store: KubeStore): KubeWatches {
  const watchers = new Set<Watcher>();
  store.onEvent((event) => {
    for (const watcher of watchers) tell(watcher, event);
  });
  const endEach = (end: (response: ServerResponse) => void) => {
    for (const watcher of watchers) {
      watchers.delete(watcher);
      end(watcher.response);
    }
  };

  return {
    serve(kind, concerns, query, response) {
      const from = Number(query.get("resourceVersion") ?? 0);
      const missed = store.since(from);
      response.writeHead(200, { "content-type": "application/json" });
      response.flushHeaders();
      if (!missed) {
        response.end(lineOf("ERROR", statusObject(tooOld(from, store.resourceVersion))));
        return;
      }
      const watcher = { kind, concerns, response, bookmarks: query.get("allowWatchBookmarks") === "true" };
      watchers.add(watcher);
      response.once("close", () => watchers.delete(watcher));
      for (const event of missed) tell(watcher, event);
    },
    get open() {
      return watchers.size;
    },
    bookmark() {
      const metadata = { resourceVersion: String(store.resourceVersion), creationTimestamp: null };
      for (const { kind, bookmarks, response } of watchers) {
        if (bookmarks) response.write(lineOf("BOOKMARK", { kind, apiVersion: "apps/v1", metadata, status: {} }));
      }
    },
    fail: (status) => endEach((response) => response.end(lineOf("ERROR", statusObject(status)))),
    end: () => endEach((response) => response.end()),
    cut: () => endEach((response) => response.write('{"type":"MODI', () => response.destroy())),
  };
}

function tell({ concerns, response }: Watcher, { type, object }: KubeEvent): void {
  if (concerns(object)) response.write(lineOf(type, object));
}

function lineOf(type: string, object: object): string {
  return `${JSON.stringify({ type, object })}\n`;
}

interface Watcher {
  kind: KubeKind;
  concerns: (object: KubeObject) => boolean;
  response: ServerResponse;
  bookmarks: boolean;
}
