import type { Health } from "../../../generated/prisma/client.ts";
import type { Judgement } from "../../inventory/health.ts";
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
  const askedUrl = healthUrl || versionUrl;
  const [status, version] = await Promise.all([
    attempt("health", askedUrl, asking, async (get) => (await get({ withBody: false })).status),
    attempt("version", versionUrl, asking, async (get) => versionBy(await get({ withBody: true }), versionField)),
  ]);
  const judgement = judge(status, askedUrl);
  const isUnwell = status.value !== undefined && judgement.health !== "HEALTHY";
  const failure = status.failure ?? (isUnwell ? undefined : version.failure);
  const seen = { ...judgement, componentVersion: version.value ?? "" };
  const wasSeen = status.value !== undefined || version.value !== undefined;
  return {
    name,
    partial: status.failure !== undefined || version.failure !== undefined,
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

/** The path tells which of a component's URLs it was; what follows it may hold a secret. */
function judge({ value: status, failure }: Attempt<number>, url: string): Judgement {
  if (status === undefined) return { health: "UNKNOWN", healthReason: failure ?? null };
  const health = healthBy(status);
  const healthReason = health === "HEALTHY" ? null : `GET ${new URL(url).pathname} answered ${status}`;
  return { health, healthReason };
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
