import type { Logger } from "@runtime-cloud/service-kit/logger";
import type { NewId } from "@runtime-cloud/service-kit/ids";
import type pg from "pg";
import { startSweep, type Sweep } from "../sweep.ts";

/** A place beside the queues that is lost with them. */
export interface QueueMarks {
  read(service: string): Promise<string | undefined>;
  write(service: string, mark: string): Promise<void>;
}

export interface QueueWatchOptions {
  /** The database whose outbox is published to the queues. */
  pool: pg.Pool;
  marks: QueueMarks;
  /** The queues' prefix: another one is another set of queues. */
  prefix: string;
  service: string;
  /** Told after a loss, when there is much to publish again. */
  onLoss: () => void;
  newId: NewId;
  logger: Logger;
  random?: () => number;
}

const LOOK_EVERY_MS = 2_000;

/**
 * Notices that the queues lost what they held (a flushed Redis, one that came back empty), and has every event that
 * they may have held published again. The mark in the queues and the one in the database differ only then.
 */
export function watchQueues({ random = Math.random, ...options }: QueueWatchOptions): Sweep {
  const { logger, onLoss } = options;
  return startSweep({
    everyMs: LOOK_EVERY_MS,
    random,
    async run() {
      try {
        const again = await look(options);
        if (again === 0) return;
        logger.warn({ events: again }, "the queues lost what they held; their events are published again");
        onLoss();
      } catch (err) {
        logger.debug({ err }, "the queues can't be looked at now");
      }
    },
  });
}

/** Answers how many events are to be published again. */
async function look({ pool, marks, prefix, service, newId }: QueueWatchOptions): Promise<number> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query("BEGIN");
    await client.query("INSERT INTO queue_mark (prefix, mark) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
      prefix,
      newId(),
    ]);
    // Waits for pages that are being published, which hold the mark's row: so none of them is overlooked.
    const { rows } = await client.query<{ mark: string }>("SELECT mark FROM queue_mark WHERE prefix = $1 FOR UPDATE", [
      prefix,
    ]);
    if (rows[0]?.mark === (await marks.read(service))) {
      await client.query("COMMIT");
      return 0;
    }
    const again = await client.query(
      `UPDATE outbox_message SET published_at = NULL
       WHERE published_at >= (SELECT marked_at FROM queue_mark WHERE prefix = $1)`,
      [prefix],
    );
    const mark = newId();
    await client.query("UPDATE queue_mark SET mark = $2, marked_at = clock_timestamp() WHERE prefix = $1", [
      prefix,
      mark,
    ]);
    await marks.write(service, mark);
    await client.query("COMMIT");
    return again.rowCount ?? 0;
  } catch (error) {
    await client
      .query("ROLLBACK")
      .catch((lost: unknown) => (broken = lost instanceof Error ? lost : new Error("rollback failed")));
    throw error;
  } finally {
    client.release(broken);
  }
}
