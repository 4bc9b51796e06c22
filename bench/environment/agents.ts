import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Health } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { steadily } from "../capacity/steadily.ts";
import type { ObservedEnvironments } from "./observed-environments.ts";
import type { ObservingService } from "./observing-service.ts";
import { COMPONENT, REPLICAS, VERSION } from "./web-component.ts";

/** Agents that report what they see, at a steady rate. */
export interface Agents {
  /** Rejects when a report wasn't taken in, or was taken for news. */
  stop(): Promise<void>;
}

/** Patient: what a service that is late makes of its schedule is to be seen, not how its callers fare. */
const TIMEOUT_MS = 30_000;

/** Starts one agent for each environment, which reports once in each interval. */
export function startAgents({ client }: ObservingService, { ids, observeSeconds }: ObservedEnvironments): Agents {
  const stopping = new AbortController();
  const components = [
    { name: COMPONENT, version: VERSION, replicasDesired: REPLICAS, replicasReady: REPLICAS, health: Health.HEALTHY },
  ];
  const steady = { perSecond: ids.length / observeSeconds, signal: stopping.signal };
  const reporting = steadily(steady, async (index) => {
    const environmentId = ids[index % ids.length] ?? "";
    const observation = { observedAt: timestampFromDate(systemClock.now()), components };
    const { changed } = await client.observeEnvironment({ environmentId, observation }, { timeoutMs: TIMEOUT_MS });
    if (changed) throw new Error("an agent's report that says nothing new was taken for a change");
  });
  // Whoever stops them hears of it.
  reporting.catch(() => undefined);
  return {
    async stop() {
      stopping.abort();
      await reporting;
    },
  };
}
