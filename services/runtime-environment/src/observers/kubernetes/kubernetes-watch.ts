import type { IncomingMessage } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import { z } from "zod";
import type { KubernetesConnection } from "./kubernetes-connection.ts";
import { kubernetesFailure } from "./kubernetes-failure.ts";
import { linesOf } from "./kubernetes-lines.ts";
import { resources, type Scope } from "./kubernetes-list.ts";
import type { WorkloadKind } from "./kubernetes-workload.ts";
import { withinTime } from "../within-time.ts";

export interface Watched {
  scope: Scope;
  kind: WorkloadKind;
  /** The list's: what comes after it is told. */
  resourceVersion: string;
  /** The cluster by the credential that holds now. */
  reconnect(): Promise<KubernetesConnection>;
  signal: AbortSignal;
  /** Something moved, or may have moved unseen. */
  onChange(): void;
  logger: Logger;
  /** Source of the pauses' jitter, from 0 to 1. */
  random: () => number;
}

/** The server ends a watch after so long; ours ends a connection that nobody answers any more. */
const SERVER_TIMEOUT_SECONDS = 290;
const CLIENT_TIMEOUT_MS = 330_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 120_000;
/** A pause is up to so much of it shorter, so that watches of one broken cluster don't come back in step. */
const JITTER = 0.5;
const GONE = 410;

/**
 * Watches one kind of workload until the signal is aborted, or until the server has forgotten where the watch was: it
 * must be begun anew from a list then. Never throws; a watch that is lost for a while costs lateness.
 */
export async function watchWorkloads(watched: Watched): Promise<void> {
  const { signal, onChange, logger, random, scope } = watched;
  const position = { resourceVersion: watched.resourceVersion };
  for (let quiet = 0; !signal.aborted;) {
    try {
      const heard = await watchOnce(watched, position);
      quiet = heard ? 0 : quiet + 1;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof WatchEnded && error.status === GONE) return onChange();
      const resource = resources[watched.kind];
      const failure =
        error instanceof WatchEnded ? error.message : kubernetesFailure(error, { ...scope, resource }).message;
      if (quiet === 0) logger.info({ ...scope, resource, failure }, "a watch was lost; looks by the interval go on");
      quiet += 1;
    }
    await wait(pauseMs(quiet, random()), undefined, { signal, ref: false }).catch(() => undefined);
  }
}

/** One connection, until the server ends it. True when it told anything; the position moves with what it tells. */
async function watchOnce(watched: Watched, position: { resourceVersion: string }): Promise<boolean> {
  const { kind, scope, signal, onChange } = watched;
  const connection = await watched.reconnect();
  const query = {
    watch: "true",
    allowWatchBookmarks: "true",
    timeoutSeconds: String(SERVER_TIMEOUT_SECONDS),
    resourceVersion: position.resourceVersion,
    ...(scope.labelSelector !== "" && { labelSelector: scope.labelSelector }),
  };
  const path = `/apis/apps/v1/namespaces/${scope.namespace}/${resources[kind]}`;
  return withinTime({ signal, timeoutMs: CLIENT_TIMEOUT_MS }, async (limit) =>
    readEvents(await connection.open(path, query, limit), position, onChange),
  );
}

async function readEvents(response: IncomingMessage, position: { resourceVersion: string }, onChange: () => void) {
  if (response.statusCode !== 200) throw new WatchEnded(response.statusCode ?? 0);
  let heard = false;
  for await (const line of linesOf(response)) {
    const { type, object } = watchEvent.parse(JSON.parse(line));
    if (type === "ERROR") throw new WatchEnded(object.code ?? 0);
    heard = true;
    position.resourceVersion = object.metadata?.resourceVersion ?? position.resourceVersion;
    if (type !== "BOOKMARK") onChange();
  }
  return heard;
}

/** What is read of an event: of an ERROR its object's code, of the others where they stand. */
const watchEvent = z.object({
  type: z.enum(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]),
  object: z.object({
    code: z.int().optional(),
    metadata: z.object({ resourceVersion: z.string().min(1).optional() }).optional(),
  }),
});

function pauseMs(quiet: number, jitter: number): number {
  const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** quiet);
  return pause * (1 - JITTER * jitter);
}

class WatchEnded extends Error {
  override readonly name = "WatchEnded";
  readonly status: number;

  constructor(status: number) {
    super(`the cluster refused the watch (${status})`);
    this.status = status;
  }
}
