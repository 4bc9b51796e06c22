import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { ExpressAdapter } from "@bull-board/express";
import type { Admin } from "@runtime-cloud/service-kit/admin";
import express from "express";
import type { QueueBackend } from "./queue-backend.ts";

export const DASHBOARD_PATH = "/dashboard";

/** Bull Board over the named queues, read-only: nobody retries or removes a job past the service that owns it. */
export function dashboard(backend: QueueBackend, queues: readonly string[]): PageHandler {
  const adapter = new ExpressAdapter();
  adapter.setBasePath(DASHBOARD_PATH);
  createBullBoard({
    queues: queues.map((name) => new BullMQAdapter(backend.queue(name), { readOnlyMode: true })),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: "Runtime Cloud" } },
  });
  const router: express.Router = adapter.getRouter();
  return express().use(DASHBOARD_PATH, router);
}

type PageHandler = Parameters<Admin["mount"]>[1];
