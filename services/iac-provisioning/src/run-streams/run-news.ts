import { type News, type NewsWanted, polledNews } from "@runtime-cloud/eventing/polled-news";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import type { PrismaClient, RunState } from "../../generated/prisma/client.ts";
import { queuePositions, type QueueMember } from "../runs/queue-position.ts";
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

/** `progress` says whether the run's progress is read as well. */
export type RunNewsWanted = NewsWanted<RunGlimpse> & { progress: boolean };

/** What becomes of runs, whichever process works on them. */
export type RunNews = News<RunGlimpse, RunNewsWanted>;

export function openRunNews({ client, logger }: { client: PrismaClient; logger: Logger }): RunNews {
  return polledNews({ followed: "runs", logger, look: (asked) => readGlimpses(client, asked) });
}

/** The state is read before the progress, so that the last progress that is told is the last there is. */
async function readGlimpses(client: PrismaClient, asked: readonly RunNewsWanted[]): Promise<Map<string, RunGlimpse>> {
  const ids = [...new Set(asked.map(({ id }) => id))];
  const rows = await client.$queryRaw<GlimpseRow[]>`
    SELECT run.id, run.version, run.state, run.mode, run.environment_id AS "environmentId",
      run.applying_at IS NOT NULL AS "hasApply", coalesce(line.number, 0) AS "lastLine"
    FROM provisioning_run run
    LEFT JOIN LATERAL (
      SELECT number FROM run_log_line WHERE run_id = run.id ORDER BY number DESC LIMIT 1
    ) line ON true
    WHERE run.id = ANY(${ids}::uuid[])`;
  const watched = new Set(asked.filter(({ progress }) => progress).map(({ id }) => id));
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
