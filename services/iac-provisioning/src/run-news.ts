import type { Logger } from "@runtime-cloud/service-kit/logger";
import type { PrismaClient, RunState } from "../generated/prisma/client.ts";
import { queuePositions, type QueueMember } from "./queue-position.ts";
import { type Progress, readProgress } from "./run-progress.ts";

/** How a run stands, as far as those who follow it need to know before they read more. */
export interface RunGlimpse {
  version: number;
  state: RunState;
  /** Of a run that waits in its environment's queue. */
  queuePosition: number | undefined;
  /** The number of its log's last line; 0 before the first. */
  lastLine: number;
  /** Of an apply that has begun, where it was asked for. */
  progress: Progress | undefined;
}

export interface NewsWanted {
  runId: string;
  progress: boolean;
  /** Asked at each look. Must not throw. */
  isNews(glimpse: RunGlimpse): boolean;
}

/** What becomes of runs, whichever process works on them. */
export interface RunNews {
  /**
   * How a run stands, as soon as that is news to the caller; undefined once the signal is aborted. Nothing is missed
   * between two calls, since the caller says itself what is news to it.
   */
  next(wanted: NewsWanted, signal: AbortSignal): Promise<RunGlimpse | undefined>;
}

/** How often the database is looked at while somebody waits for something, once for all of them. */
const LOOK_EVERY_MS = 300;
/** Looks take a tenth of the time at most: a receipt of many thousand resources is looked at less often. */
const PAUSE_PER_LOOK = 9;
const MAX_PAUSE_MS = 3_000;

export function openRunNews({ client, logger }: { client: PrismaClient; logger: Logger }): RunNews {
  const waiting = new Set<Waiting>();
  let timer: NodeJS.Timeout | undefined;
  let looking = false;
  let failing = false;
  let pauseMs = LOOK_EVERY_MS;

  function schedule(): void {
    if (timer || looking || waiting.size === 0) return;
    timer = setTimeout(() => {
      timer = undefined;
      looking = true;
      void look().finally(() => {
        looking = false;
        schedule();
      });
    }, pauseMs);
  }

  async function look(): Promise<void> {
    const from = performance.now();
    const asked = [...waiting];
    try {
      const glimpses = await readGlimpses(client, asked);
      for (const each of asked) {
        const glimpse = glimpses.get(each.runId);
        if (glimpse && each.isNews(glimpse)) each.resolve(glimpse);
      }
      failing = false;
    } catch (err) {
      if (!failing) logger.warn({ err }, "followed runs can't be looked at now; the looks go on");
      failing = true;
    }
    pauseMs = Math.min(MAX_PAUSE_MS, Math.max(LOOK_EVERY_MS, (performance.now() - from) * PAUSE_PER_LOOK));
  }

  return {
    next(wanted, signal) {
      if (signal.aborted) return Promise.resolve(undefined);
      return new Promise((resolve) => {
        const end = (glimpse?: RunGlimpse) => {
          waiting.delete(entry);
          signal.removeEventListener("abort", onAbort);
          if (waiting.size === 0) {
            clearTimeout(timer);
            timer = undefined;
          }
          resolve(glimpse);
        };
        const onAbort = () => end();
        const entry: Waiting = { ...wanted, resolve: end };
        waiting.add(entry);
        signal.addEventListener("abort", onAbort, { once: true });
        schedule();
      });
    },
  };
}

interface Waiting extends NewsWanted {
  resolve(glimpse: RunGlimpse): void;
}

/** The state is read before the progress, so that the last progress that is told is the last there is. */
async function readGlimpses(client: PrismaClient, asked: readonly NewsWanted[]): Promise<Map<string, RunGlimpse>> {
  const ids = [...new Set(asked.map(({ runId }) => runId))];
  const rows = await client.$queryRaw<GlimpseRow[]>`
    SELECT run.id, run.version, run.state, run.mode, run.environment_id AS "environmentId",
      run.applying_at IS NOT NULL AS "hasApply", coalesce(line.number, 0) AS "lastLine"
    FROM provisioning_run run
    LEFT JOIN LATERAL (
      SELECT number FROM run_log_line WHERE run_id = run.id ORDER BY number DESC LIMIT 1
    ) line ON true
    WHERE run.id = ANY(${ids}::uuid[])`;
  const watched = new Set(asked.filter(({ progress }) => progress).map(({ runId }) => runId));
  const applies = rows.filter(({ id, hasApply }) => hasApply && watched.has(id));
  const positions = await queuePositions(client, rows);
  const progress = await readProgress(
    client,
    applies.map(({ id }) => id),
  );
  return new Map(
    rows.map(({ id, version, state, lastLine }) => [
      id,
      { version, state, lastLine, queuePosition: positions.get(id), progress: progress.get(id) },
    ]),
  );
}

interface GlimpseRow extends QueueMember {
  version: number;
  hasApply: boolean;
  lastLine: number;
}
