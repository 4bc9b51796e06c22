import pg from "pg";
import { z } from "zod";
import type { Contestant } from "../rounds.ts";
import { startChild } from "./child-process.ts";
import type { EnvironmentServers } from "./environment-servers.ts";
import { VERSION } from "./web-component.ts";

export const PLAIN_POLLER = "plain_poller";

/** What `poller-process.ts` answers. */
const reportSchema = z.object({ seconds: z.number(), cpuMs: z.number() });
export type SweepReport = z.output<typeof reportSchema>;

/** Sweeps so many environments once a round: the same HTTP requests, and an UPDATE each. */
export async function withPlainPoller<T>(
  { emptyDatabase, endpoints }: EnvironmentServers,
  environments: number,
  work: (poller: Contestant) => Promise<T>,
): Promise<T> {
  const databaseUrl = await emptyDatabase(PLAIN_POLLER);
  const pool = new pg.Pool({ connectionString: databaseUrl });
  await pool.query("CREATE TABLE polled (place int PRIMARY KEY, well boolean, version text, observed_at timestamptz)");
  await pool.query("INSERT INTO polled (place) SELECT generate_series(0, $1::int - 1)", [environments]);
  const child = startChild("poller-process.ts", {
    DATABASE_URL: databaseUrl,
    ENDPOINTS_URL: endpoints.url,
    ENVIRONMENTS: String(environments),
  });
  try {
    return await work({
      name: PLAIN_POLLER,
      async round() {
        await pool.query("UPDATE polled SET well = NULL, version = NULL, observed_at = NULL");
        const { seconds, cpuMs } = reportSchema.parse(await child.ask("sweep"));
        return {
          figures: { cpu_ms_per_look: cpuMs / environments, looks_per_second: environments / seconds },
          check: () => checkPolled(pool, environments),
        };
      },
    });
  } finally {
    await child.close();
    await pool.end();
  }
}

async function checkPolled(pool: pg.Pool, environments: number): Promise<void> {
  const { rows } = await pool.query<{ well: number }>(
    "SELECT count(*)::int AS well FROM polled WHERE well AND version = $1 AND observed_at IS NOT NULL",
    [VERSION],
  );
  if (rows[0]?.well !== environments) throw new Error(`${String(rows[0]?.well)} of ${environments} were polled well`);
}
