import { Gauge, type Registry } from "prom-client";
import type { Context, Tx } from "../context.ts";

type Labels = "kind" | "state";

/** Registers what an operator watches of pools: sums by kind and state, so that there are few series however many pools. */
export function registerCapacityMetrics({ client }: Pick<Context, "client">, registry: Registry): void {
  const figures = shared(() => figuresOf(client));
  const gauge = (name: string, help: string, read: (figure: Figure) => number) =>
    new Gauge<Labels>({
      name,
      help,
      labelNames: ["kind", "state"],
      registers: [registry],
      async collect() {
        // Without a database there is no figure; the other metrics are wanted all the more.
        const rows = await figures().catch(() => []);
        this.reset();
        for (const row of rows) this.set({ kind: row.kind, state: row.state }, read(row));
      },
    });
  gauge("capacity_pools", "Worker pools that aren't retired", ({ pools }) => pools);
  gauge("capacity_pool_slots", "Slots that may be leased", ({ size }) => size);
  gauge("capacity_pool_slots_used", "Slots under lease", ({ used }) => used);
  gauge("capacity_pool_slots_over", "Slots under lease beyond the sizes of pools that shrank", ({ over }) => over);
  gauge("capacity_waiting", "Places in the pools' queues", ({ waiting }) => waiting);
}

interface Figure extends Record<Labels, string> {
  pools: number;
  size: number;
  used: number;
  over: number;
  waiting: number;
}

function figuresOf(tx: Tx): Promise<Figure[]> {
  return tx.$queryRaw<Figure[]>`
    SELECT kind::text AS kind, state::text AS state, count(*)::float8 AS pools, sum(current_size)::float8 AS size,
      sum(used)::float8 AS used, sum(greatest(used - current_size, 0))::float8 AS over, sum(waiting)::float8 AS waiting
    FROM worker_pool WHERE state <> 'RETIRED' GROUP BY kind, state`;
}

/** Calls that come while one is under way have its answer: a scrape reads every gauge at once. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | undefined;
  return () => {
    underWay ??= read().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}
