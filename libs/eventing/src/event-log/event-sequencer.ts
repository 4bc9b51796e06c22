import { setTimeout as wait } from "node:timers/promises";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import type pg from "pg";
import { wakeable } from "../wake.ts";

export interface EventSequencer {
  /** Tells it that something was committed to the outbox; its poll finds that too, later. */
  wake(): void;
  /** Finishes the page under way. */
  stop(): Promise<void>;
}

export interface SequencerOptions {
  /** The database whose outbox it puts in order. */
  pool: pg.Pool;
  logger: Logger;
  /** Source of the backoff's jitter, from 0 to 1. */
  random?: () => number;
}

/** Notified with the newest sequence when the log has grown. */
export const LOG_CHANNEL = "event_log";

const PAGE = 1_000;
/** Found by the poll: what another process committed and didn't put in order before it died. */
const POLL_MS = 1_000;
/** A busy outbox is put in order by the page, not by the row: that much later, and at a fraction of the commits. */
const GATHER_MS = 50;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5_000;

/**
 * Gives every committed event its place in the log. Positions can't be that: a transaction that took a lower one may
 * commit later, and a reader would have gone past it. So places are given after the commit, by one transaction at a
 * time, which holds the log's bounds: when a reader sees a sequence, it sees all below it. Several sequencers may run;
 * queues have no part in it.
 */
export function startSequencer({ pool, logger, random = Math.random }: SequencerOptions): EventSequencer {
  const pause = wakeable();
  /** What wakes a sequencer has no say while it can't work: it would try again with each commit. */
  const recovery = wakeable();
  let stopped = false;

  const loop = (async () => {
    for (let failures = 0; !stopped;) {
      try {
        const sequenced = await sequencePage(pool);
        if (failures > 0) logger.info("events get their place in the log again");
        failures = 0;
        if (sequenced === PAGE || stopped) continue;
        await pause.sleep(POLL_MS);
        await wait(GATHER_MS);
      } catch (err) {
        failures += 1;
        const level = failures === 1 ? "warn" : "debug";
        logger[level]({ err, failures }, "events can't be put into the log now; they wait for it in the outbox");
        if (!stopped) await recovery.sleep(backoff(failures, random));
      }
    }
  })();

  return {
    wake: pause.wake,
    async stop() {
      stopped = true;
      pause.wake();
      recovery.wake();
      await loop;
    },
  };
}

/**
 * Puts up to a page of events into the log, and answers how many. None while another sequencer is at it: that one has
 * heard of them too.
 *
 * The commit is flushed whatever the server's setting: a sequence that somebody has seen must not be given again.
 */
export async function sequencePage(pool: pg.Pool): Promise<number> {
  const client = await pool.connect();
  let broken = false;
  try {
    await client.query("BEGIN; SET LOCAL synchronous_commit = on");
    const lock = await client.query("SELECT FROM event_log_bounds FOR UPDATE SKIP LOCKED");
    // By a statement of its own, which sees all that was committed before the lock was had.
    const sequenced = lock.rowCount === 0 ? 0 : await appendPage(client);
    await client.query("COMMIT");
    return sequenced;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => (broken = true));
    throw error;
  } finally {
    client.release(broken);
  }
}

async function appendPage(client: pg.PoolClient): Promise<number> {
  const { rows } = await client.query<{ sequenced: number }>(
    `WITH taken AS (
       DELETE FROM unsequenced_event
       WHERE position IN (SELECT position FROM unsequenced_event ORDER BY position LIMIT $1)
       RETURNING position, message_id
     ),
     appended AS (
       INSERT INTO event_log (sequence, recorded_at, message_id, topic, tenant_id, subject)
       SELECT bounds.newest + row_number() OVER (ORDER BY taken.position),
              greatest(statement_timestamp(), bounds.newest_at), message.id, message.topic, message.tenant_id, message.subject
       FROM event_log_bounds bounds, taken JOIN outbox_message message ON message.id = taken.message_id
       RETURNING sequence, recorded_at
     ),
     reached AS (
       UPDATE event_log_bounds
       SET newest = page.newest, newest_at = page.newest_at
       FROM (SELECT max(sequence) AS newest, max(recorded_at) AS newest_at, count(*)::int AS sequenced FROM appended) page
       WHERE page.sequenced > 0
       RETURNING page.sequenced, page.newest
     )
     SELECT sequenced, pg_notify($2, newest::text) FROM reached`,
    [PAGE, LOG_CHANNEL],
  );
  return rows[0]?.sequenced ?? 0;
}

/** Full jitter: sequencers that lost the same database don't come back at the same instant. */
function backoff(failures: number, random: () => number): number {
  return (0.5 + random() / 2) * Math.min(FIRST_BACKOFF_MS * 2 ** failures, MAX_BACKOFF_MS);
}
