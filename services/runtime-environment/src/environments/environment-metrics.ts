import { Gauge, type Registry } from "prom-client";
import type { Context } from "../context.ts";
import { syncOf } from "../inventory/sync.ts";

/** Registers how environments are; read from the database when it is scraped. */
export function registerEnvironmentMetrics({ client }: Pick<Context, "client">, registry: Registry): void {
  new Gauge({
    name: "environments",
    help: "Environments that aren't retired, by freshness, health and sync",
    labelNames: ["state", "health", "sync"],
    registers: [registry],
    async collect() {
      // Without a database there is no figure; the other metrics are wanted all the more.
      const rows = await figuresOf(client).catch(() => []);
      this.reset();
      for (const { state, health, environments, ...signs } of rows) {
        this.inc({ state, health, sync: syncOf(signs) }, environments);
      }
    },
  });
}

interface Figure {
  state: string;
  health: string;
  environments: number;
  drifted: boolean;
  pending: boolean;
  unsure: boolean;
}

function figuresOf(client: Context["client"]): Promise<Figure[]> {
  return client.$queryRaw<Figure[]>`
    SELECT state::text AS state, health::text AS health, count(*)::float8 AS environments, drifted, pending, unsure
    FROM (
      SELECT state, health, observed_at IS NULL OR observation_failure IS NOT NULL AS unsure,
        EXISTS (SELECT FROM finding WHERE environment_id = inventory.id
          AND state IN ('OPEN', 'PROPOSED') AND vanished_at IS NULL) AS drifted,
        EXISTS (SELECT FROM tracked_specification WHERE inventory_id = inventory.id
          AND coalesce(declared_version, 0) > coalesce(applied_version, 0)) AS pending
      FROM inventory WHERE state <> 'RETIRED') AS environment
    GROUP BY state, health, drifted, pending, unsure`;
}
