import type { Logger } from "@runtime-cloud/service-kit/logger";
import pg from "pg";
import { wakeable } from "./wake.ts";

export interface OutboxListener {
  close(): Promise<void>;
}

/** Notified by a trigger of `outbox_message`, once for each statement that inserts. */
const CHANNEL = "outbox";
const FIRST_RECONNECT_MS = 100;
const MAX_RECONNECT_MS = 5_000;

/**
 * Calls `heard` when something was committed to the outbox, and once after every (re)connect, since what was said
 * meanwhile is lost. Its connection is its own, so that it takes none from the pool.
 */
export function listenToOutbox(pool: pg.Pool, heard: () => void, logger: Logger): OutboxListener {
  const pause = wakeable();
  let closed = false;
  let current: pg.Client | undefined;

  const loop = (async () => {
    for (let failures = 0; !closed; failures += 1) {
      const client = new pg.Client(pool.options);
      const lost = new Promise<void>((resolve) => client.once("end", resolve));
      client.on("error", (err) => logger.debug({ err }, "outbox listener lost its connection"));
      client.on("notification", heard);
      try {
        await client.connect();
        current = client;
        if (closed) break;
        await client.query(`LISTEN ${CHANNEL}`);
        failures = 0;
        heard();
        await lost;
      } catch (err) {
        logger.debug({ err }, "outbox listener can't connect; the poll goes on");
      }
      await client.end().catch(() => undefined);
      if (!closed) await pause.sleep(Math.min(FIRST_RECONNECT_MS * 2 ** failures, MAX_RECONNECT_MS));
    }
  })();

  return {
    async close() {
      closed = true;
      pause.wake();
      await current?.end();
      await loop;
    },
  };
}
