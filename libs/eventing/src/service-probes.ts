import type { Probe } from "@runtime-cloud/service-kit/health";
import { CREATE } from "@runtime-cloud/state-machines/lifecycle-edges";
import type { Pool } from "pg";

/** What a service can't serve without. Queues are not among them: without them it is late, and nothing else. */
export function serviceProbes(pool: Pool): Record<string, Probe> {
  return {
    database: async () => {
      await pool.query("SELECT 1");
    },
    "migrations (npm run migrate -- deploy)": async () => {
      await pool.query("SELECT FROM lifecycle_edge WHERE event = $1 LIMIT 1", [CREATE]);
    },
  };
}
