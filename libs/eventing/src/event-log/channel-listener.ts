import type { Logger } from "@runtime-cloud/service-kit/logger";
import pg from "pg";
import { wakeable } from "../wake.ts";

export interface ChannelListener {
  close(): Promise<void>;
}

/** What is called with a notification's payload, and without one after every (re)connect. */
export type Heard = (payload?: string) => void;

const FIRST_RECONNECT_MS = 100;
const MAX_RECONNECT_MS = 5_000;

/**
 * Listens to channels of the database, by names that are plain lower-case words. What is said while the connection is
 * lost isn't heard; hence the call after every (re)connect. The connection is its own, so that it takes none from the
 * pool.
 */
export function listenTo(pool: pg.Pool, channels: Readonly<Record<string, Heard>>, logger: Logger): ChannelListener {
  const pause = wakeable();
  let closed = false;
  let current: pg.Client | undefined;

  const loop = (async () => {
    for (let failures = 0; !closed; failures += 1) {
      const client = new pg.Client(pool.options);
      const lost = new Promise<void>((resolve) => client.once("end", resolve));
      client.on("error", (err) => logger.debug({ err }, "a listener lost its connection"));
      client.on("notification", ({ channel, payload }) => channels[channel]?.(payload));
      try {
        await client.connect();
        current = client;
        if (closed) break;
        await client.query(
          Object.keys(channels)
            .map((channel) => `LISTEN ${channel}`)
            .join("; "),
        );
        failures = 0;
        for (const heard of Object.values(channels)) heard();
        await lost;
      } catch (err) {
        logger.debug({ err }, "a listener can't connect; the polls go on");
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
