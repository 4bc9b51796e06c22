import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { eventOf } from "@runtime-cloud/contracts/events/event-catalogue";
import { takeIn } from "@runtime-cloud/eventing/take-in";
import { deadlines } from "@runtime-cloud/execution-capacity/deadlines";
import { inbox } from "@runtime-cloud/execution-capacity/inbox";
import type { LeaseDesk } from "@runtime-cloud/execution-capacity/desk/lease-desk";
import type { Clock } from "@runtime-cloud/service-kit/clock";
import { createLogger, type Logger } from "@runtime-cloud/service-kit/logger";
import type { TestDatabase } from "../_support/database.ts";
import { hearGuards } from "./commit-guards.ts";
import { type CapacityClient, runOut, startCapacity } from "../_support/execution-capacity.ts";

/** The service as one of its processes runs it, on a database that others may share. */
export interface ServiceProcess {
  desk: LeaseDesk;
  /** Its RPCs, as a tenant's operator calls them. */
  as(tenantId: string): CapacityClient;
  /** Takes an event in, as its inbox does; a duplicate has no effect. */
  deliver(event: CloudEvent | undefined): Promise<void>;
  /** All that is due by the database's clock. */
  runDeadlines(): Promise<void>;
  /** I1, over all there is. */
  differences(): Promise<string[]>;
  close(): Promise<void>;
}

export interface ProcessOptions {
  database: TestDatabase;
  /** By how much its own clock is wrong. */
  clockSkewMs?: number;
  /** Told of what the database's guards find in its commits, and of errors that it logs: nobody foresaw those. */
  onBroken: (text: string) => void;
}

export async function startProcess({ database, clockSkewMs = 0, onBroken }: ProcessOptions): Promise<ServiceProcess> {
  const clock: Clock = { now: () => new Date(Date.now() + clockSkewMs) };
  const service = await startCapacity({ database, clock, logger: errorsTo(onBroken) });
  const { context, desk } = service;
  hearGuards(context.pool, onBroken);
  const handlers = inbox(context);
  const due = deadlines(context, desk);
  const clients = new Map<string, CapacityClient>();

  return {
    desk,
    as(tenantId) {
      const client = clients.get(tenantId) ?? service.as(tenantId);
      clients.set(tenantId, client);
      return client;
    },
    async deliver(event) {
      const taking = handlers.filter(({ schema }) => eventOf(schema).topic === event?.type);
      for (const handler of taking) {
        if (event) await takeIn(context, { event, handler: handler.name, work: handler.prepare(event) });
      }
    },
    async runDeadlines() {
      for (const deadline of due) await runOut(deadline);
    },
    async differences() {
      return (await service.differences()).map((difference) => `I1: ${JSON.stringify(difference)}`);
    },
    close: () => service.close(),
  };
}

function errorsTo(tell: (line: string) => void): Logger {
  return createLogger({ service: "execution-capacity", level: "error", destination: { write: tell } });
}
