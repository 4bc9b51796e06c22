// What one would write in an afternoon, as `plain-poller.ts` starts it: asks each component of DATABASE_URL's list at
// ENDPOINTS_URL for its health and version, so many at once, and writes what it heard.
import pg from "pg";
import { z } from "zod";
import { eachOf, numbers } from "../capacity/each-of.ts";
import { answerParent } from "./child-process.ts";
import type { SweepReport } from "./plain-poller.ts";
import { componentUrls } from "./web-component.ts";

/** As many as the service looks at side by side. */
const AT_ONCE = 16;
const TIMEOUT_MS = 5_000;
const US_PER_MS = 1_000;
const settingsSchema = z.object({
  DATABASE_URL: z.string(),
  ENDPOINTS_URL: z.string(),
  ENVIRONMENTS: z.coerce.number(),
});
const versionSchema = z.object({ version: z.string() });

const { DATABASE_URL, ENDPOINTS_URL, ENVIRONMENTS } = settingsSchema.parse(process.env);
const pool = new pg.Pool({ connectionString: DATABASE_URL });
answerParent(sweep);

async function sweep(): Promise<SweepReport> {
  const cpuBefore = process.cpuUsage();
  const began = performance.now();
  await eachOf(numbers(ENVIRONMENTS), AT_ONCE, look);
  const { user, system } = process.cpuUsage(cpuBefore);
  return { seconds: (performance.now() - began) / 1_000, cpuMs: (user + system) / US_PER_MS };
}

async function look(place: number): Promise<void> {
  const { healthUrl, versionUrl } = componentUrls(ENDPOINTS_URL, place);
  const [isWell, version] = await Promise.all([healthAt(healthUrl), versionAt(versionUrl)]);
  await pool.query("UPDATE polled SET well = $2, version = $3, observed_at = clock_timestamp() WHERE place = $1", [
    place,
    isWell,
    version,
  ]);
}

async function healthAt(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  await response.body?.cancel();
  return response.ok;
}

async function versionAt(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  return versionSchema.parse(await response.json()).version;
}
