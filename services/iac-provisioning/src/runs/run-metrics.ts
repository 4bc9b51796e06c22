import { Gauge, type Registry } from "prom-client";
import type { Context } from "../context.ts";
import { OPEN_STATES } from "./run-queue.ts";

/** Registers what an operator watches of runs that aren't over; read from the database when it is scraped. */
export function registerRunMetrics({ client }: Pick<Context, "client">, registry: Registry): void {
  const figures = shared(() => figuresOf(client));
  new Gauge({
    name: "provisioning_runs",
    help: "Runs that aren't over; an INDETERMINATE one waits for an operator and blocks its environment",
    labelNames: ["state"],
    registers: [registry],
    async collect() {
      const rows = await figures();
      this.reset();
      for (const { state, runs } of rows ?? []) this.set({ state }, runs);
    },
  });
  new Gauge({
    name: "provisioning_oldest_queued_seconds",
    help: "How long the oldest run has been QUEUED, for its environment or for an executor",
    registers: [registry],
    async collect() {
      const rows = await figures();
      if (rows) this.set(rows.find(({ state }) => state === "QUEUED")?.oldestSeconds ?? 0);
    },
  });
  new Gauge({
    name: "provisioning_runs_unattended",
    help: "Runs whose executor has fallen silent and that nobody has taken over yet",
    registers: [registry],
    async collect() {
      const rows = await figures();
      if (rows) this.set(rows.reduce((sum, { unattended }) => sum + unattended, 0));
    },
  });
}

interface Figure {
  state: string;
  runs: number;
  oldestSeconds: number;
  unattended: number;
}

function figuresOf(client: Context["client"]): Promise<Figure[]> {
  return client.$queryRaw<Figure[]>`
    SELECT state::text AS state, count(*)::float8 AS runs,
      extract(epoch FROM clock_timestamp() - min(queued_at))::float8 AS "oldestSeconds",
      count(*) FILTER (WHERE state IN ('PLANNING', 'APPLYING', 'CANCELLING')
        AND coalesce(executor_until, '-infinity') <= clock_timestamp())::float8 AS unattended
    FROM provisioning_run WHERE state IN ${OPEN_STATES} GROUP BY state`;
}

/**
 * Calls that come while one is under way have its answer: a scrape reads every gauge at once. Undefined without a
 * database: the other metrics are wanted all the more.
 */
function shared<T>(read: () => Promise<T>): () => Promise<T | undefined> {
  let underWay: Promise<T | undefined> | undefined;
  return () => {
    underWay ??= read()
      .catch(() => undefined)
      .finally(() => {
        underWay = undefined;
      });
    return underWay;
  };
}
