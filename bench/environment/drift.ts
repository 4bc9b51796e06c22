import { isDeepStrictEqual } from "node:util";
import { portions } from "../events/committed.ts";
import type { Findings } from "../report.ts";
import { figureOf, type Round, takeTurns } from "../rounds.ts";
import { quantile } from "../spread.ts";
import { createEnvironments, EDITED_FACT, editByHand } from "./applied-environments.ts";
import { type DriftNews, listenForDrift } from "./drift-news.ts";
import { BASELINE, type EnvironmentServers, LISTENER } from "./environment-servers.ts";
import type { ObservingService } from "./observing-service.ts";

export interface DriftSizes {
  readonly rounds: number;
  /** Environments that drift in each round, one after the other. */
  readonly drifts: number;
}

export const DRIFT_SIZES: Readonly<Record<"full" | "quick", DriftSizes>> = {
  full: { rounds: 5, drifts: 8 },
  quick: { rounds: 2, drifts: 5 },
};

const OURS = "drift_on_disk";

/** Somebody edits a file, and somebody asks for a look: how soon a subscriber knows. */
export async function measureDrift(
  servers: EnvironmentServers,
  service: ObservingService,
  { rounds, drifts }: DriftSizes,
): Promise<Findings> {
  const news = listenForDrift(service.queues);
  // One round more than those that count, each with environments that nothing has drifted in.
  const ids = await createEnvironments(service, (rounds + 1) * drifts);
  const unspoilt = [...portions(ids, drifts)];
  const round = () => driftIn({ servers, service, news }, unspoilt.shift() ?? []);
  await takeTurns([{ name: OURS, round }], 1);
  const measured = await takeTurns([{ name: OURS, round }], rounds);
  return {
    measured,
    headlines: {
      drift_heard_p50_ms: {
        meaning: "median time from ObserveEnvironment's call to a subscriber that has RuntimeDriftDetected, in ms",
        spread: figureOf(measured, "drift_heard_p50_ms", OURS),
      },
    },
    ratios: {},
  };
}

export function describeDrift({ rounds, drifts }: DriftSizes): string {
  return [
    `rounds ${rounds} of ${drifts} environments, one after the other, after one that doesn't count`,
    `each has ${BASELINE} applied, a file of which is edited just before the call; both services are processes of their own, and ${LISTENER}'s inbox is read by this one`,
  ].join("; ");
}

async function driftIn({ servers, service, news }: Stage, ids: readonly string[]): Promise<Round> {
  const { client, tenantId, aside } = service;
  const answered: number[] = [];
  const heard: number[] = [];
  for (const environmentId of ids) {
    await editByHand(servers.provisioning, tenantId, environmentId);
    const asked = performance.now();
    await client.observeEnvironment({ environmentId });
    answered.push(performance.now() - asked);
    heard.push((await news.detected(environmentId)) - asked);
  }
  return {
    figures: {
      drift_heard_p50_ms: quantile(heard, 0.5),
      drift_heard_max_ms: Math.max(...heard),
      observe_call_p50_ms: quantile(answered, 0.5),
    },
    async check() {
      const { rows } = await aside.query(FOUND, [ids, EDITED_FACT]);
      const expected = { findings: ids.length, edited: ids.length, announced: ids.length };
      const isOnce = ids.every((id) => news.count(id) === 1);
      if (isOnce && isDeepStrictEqual({ ...rows[0] }, expected)) return;
      const found = JSON.stringify(rows[0]);
      throw new Error(`of ${JSON.stringify(expected)} the database says ${found}, each heard once: ${String(isOnce)}`);
    },
  };
}

const FOUND = `
  SELECT count(*)::int AS findings,
    count(*) FILTER (WHERE state = 'OPEN' AND resource || ' ' || attribute = $2)::int AS edited,
    (SELECT count(*)::int FROM outbox_message WHERE topic LIKE '%.runtime-drift-detected'
       AND envelope->'data'->>'environmentId' = ANY($1::text[])) AS announced
  FROM finding WHERE environment_id = ANY($1::text[])`;

interface Stage {
  readonly servers: EnvironmentServers;
  readonly service: ObservingService;
  readonly news: DriftNews;
}
