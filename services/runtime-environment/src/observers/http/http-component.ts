import type { Health } from "../../../generated/prisma/client.ts";
import type { Asked } from "../half-answer.ts";
import { type HttpAccess, httpGet } from "./http-get.ts";
import { versionIn } from "./http-version.ts";
import { ObservationFailed } from "../observer.ts";
import type { HttpComponent } from "../observer-settings.ts";
import { withinTime } from "../within-time.ts";

/** How a component is asked; the time is for each of its URLs. */
export type HttpAsking = HttpAccess & { signal: AbortSignal; timeoutMs: number };

/**
 * Asks a component for its health and version, side by side. One without a health URL is as well as its version URL
 * answers. One that isn't well needn't answer for its version: that is no failure, and the version known before stays.
 */
export async function askComponent({ name, ...component }: HttpComponent, asking: HttpAsking): Promise<Asked> {
  const { healthUrl, versionUrl, versionField } = component;
  const [health, version] = await Promise.all([
    attempt("health", healthUrl || versionUrl, asking, async (get) =>
      healthBy((await get({ withBody: false })).status),
    ),
    attempt("version", versionUrl, asking, async (get) => versionBy(await get({ withBody: true }), versionField)),
  ]);
  const isUnwell = health.value !== undefined && health.value !== "HEALTHY";
  const failure = health.failure ?? (isUnwell ? undefined : version.failure);
  const seen = { health: health.value ?? "UNKNOWN", componentVersion: version.value ?? "" } as const;
  const wasSeen = health.value !== undefined || version.value !== undefined;
  return {
    name,
    partial: health.failure !== undefined || version.failure !== undefined,
    ...(wasSeen && { component: { name, ...seen, replicasDesired: 0, replicasReady: 0 } }),
    ...(failure !== undefined && { failure }),
  };
}

async function attempt<T>(
  what: string,
  url: string,
  { timeoutMs, signal: parent, ...access }: HttpAsking,
  read: (get: Get) => Promise<T>,
): Promise<Attempt<T>> {
  if (url === "") return {};
  try {
    const limits = { signal: parent, timeoutMs };
    return { value: await withinTime(limits, (signal) => read((how) => httpGet(url, { ...access, ...how, signal }))) };
  } catch (error) {
    if (error instanceof ObservationFailed) return { failure: `${what}: ${error.message}` };
    throw error;
  }
}

function healthBy(status: number): Health {
  if (status >= 200 && status < 300) return "HEALTHY";
  return status === 503 ? "PROGRESSING" : "DEGRADED";
}

function versionBy({ status, body }: { status: number; body: string }, field: string): string {
  if (status >= 200 && status < 300) return versionIn(body, field);
  throw new ObservationFailed(`answers with status ${status}`);
}

type Get = (how: { withBody: boolean }) => ReturnType<typeof httpGet>;

/** Neither of both: there was nothing to ask. */
interface Attempt<T> {
  value?: T;
  failure?: string;
}
