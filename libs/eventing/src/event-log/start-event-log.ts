import type { ConnectRouter } from "@connectrpc/connect";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { EventLogService } from "@runtime-cloud/contracts/runtimecloud/eventlog/v1/event_log_service_pb";
import type { NewId } from "@runtime-cloud/service-kit/ids";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import type pg from "pg";
import { listenTo } from "./channel-listener.ts";
import { eventLogService } from "./event-log-service.ts";
import { LOG_CHANNEL, startSequencer } from "./event-sequencer.ts";
import { logTip } from "./log-tip.ts";
import type { QueueBackend } from "../queues/queue-backend.ts";
import { within } from "../queues/within.ts";

export interface EventLogOptions {
  pool: pg.Pool;
  backend: QueueBackend;
  /** The service's name in the catalogue. */
  subscriber: string;
  /** Those of the deployment. */
  subscribers: readonly string[];
  newId: NewId;
  logger: Logger;
}

export interface EventLog {
  /** Adds the RPCs. */
  routes(router: ConnectRouter): void;
  /** Tells it that something was committed to the outbox; its poll finds that too, later. */
  wake(): void;
  stop(): Promise<void>;
}

/** How long a caller waits for the queues' connection. */
const CONNECT_MS = 2_000;

/** Puts a service's outbox in order, and opens that to callers. */
export function startEventLog({ logger, subscriber, ...options }: EventLogOptions): EventLog {
  const { pool, backend } = options;
  const tip = logTip(pool, logger);
  const sequencer = startSequencer({ pool, logger });
  const listener = listenTo(pool, { [LOG_CHANNEL]: tip.heard }, logger);
  const inbox = async () => {
    const queue = backend.queue(inboxOf(subscriber));
    await within(CONNECT_MS, queue.waitUntilReady(), "the queues are out of reach: try again");
    return queue;
  };
  const service = eventLogService({ ...options, tip, producer: subscriber, inbox });
  return {
    routes: (router) => void router.service(EventLogService, service),
    wake: sequencer.wake,
    async stop() {
      await Promise.all([listener.close(), sequencer.stop(), tip.stop()]);
    },
  };
}
