import type { ConnectRouter } from "@connectrpc/connect";
import type { PrismaPg } from "@prisma/adapter-pg";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import type { SharedSettings } from "@runtime-cloud/service-kit/settings";
import type { TransactionalClient } from "@runtime-cloud/service-kit/transact";
import type { ServiceName } from "@runtime-cloud/state-machines/lifecycle-edges";
import type { Registry } from "prom-client";
import type { z } from "zod";
import type { Deadline } from "./deadlines.ts";
import type { EventHandler } from "./event-handler.ts";
import type { QueueBackend } from "./queues/queue-backend.ts";
import type { ServiceContext } from "./service-context.ts";
import type { SqlTransaction } from "./sql-transaction.ts";
import { startWorkQueue, type WorkQueueOptions } from "./queues/work-queue.ts";

/** All that makes a service itself; `startService` brings the rest. */
export interface ServiceDefinition<Client extends DatabaseClient<Tx>, Tx extends SqlTransaction, Settings> {
  name: ServiceName;
  /** Its name in the event catalogue, for example `ExecutionCapacityService`. */
  subscriber: string;
  settings: z.ZodObject & z.ZodType<Settings>;
  /** Makes the generated Prisma client. */
  client(adapter: PrismaPg): Client;
  /** `registry` is where it registers its own metrics. */
  parts(context: ServiceContext<Client, Settings>, registry: Registry): Promise<ServiceParts<Tx>>;
}

export interface ServiceParts<Tx> {
  routes(router: ConnectRouter): void;
  /** Full names of the proto services, for health. */
  services: readonly string[];
  handlers: readonly EventHandler<Tx>[];
  deadlines: readonly Deadline[];
  /** Queues that this process works on; made by {@link workOn}. */
  workQueues: readonly WorkQueueDefinition[];
  /** Closes what the parts opened themselves; called last. */
  stop?(): Promise<void>;
}

/** A work queue that waits for its backend. */
export interface WorkQueueDefinition {
  name: string;
  start(backend: QueueBackend, logger: Logger): { close(graceMs?: number): Promise<void> };
}

export type DatabaseClient<Tx> = TransactionalClient<Tx> & { $disconnect(): Promise<void> };

/** `name` is the queue's, as `context.enqueue` names it: for example `iac-provisioning.runs`. */
export function workOn<Data>(options: Omit<WorkQueueOptions<Data>, "backend" | "logger">): WorkQueueDefinition {
  return { name: options.name, start: (backend, logger) => startWorkQueue({ ...options, backend, logger }) };
}

/** Lets the compiler infer a definition's types. */
export function defineService<
  Client extends DatabaseClient<Tx>,
  Tx extends SqlTransaction,
  Settings extends SharedSettings,
>(definition: ServiceDefinition<Client, Tx, Settings>): ServiceDefinition<Client, Tx, Settings> {
  return definition;
}
