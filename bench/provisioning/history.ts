import { RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { numbers } from "../capacity/each-of.ts";
import type { Finding, Findings } from "../report.ts";
import { type Contestant, type Measured, ratio, type Round, takeTurns } from "../rounds.ts";
import { quantile } from "../spread.ts";
import { ONE_FILE } from "./bench-programs.ts";
import { declareInNewEnvironment, runToApplied } from "./bench-runs.ts";
import { addFinishedRuns } from "./finished-runs.ts";
import type { ProvisioningServers } from "./provisioning-servers.ts";
import { openProvisioningService, type ProvisioningService } from "./provisioning-service.ts";
import { phasesOf } from "./run-phases.ts";

export interface HistorySizes {
  readonly rounds: number;
  /** Runs that ended before, fewest first. */
  readonly finished: readonly [few: number, many: number];
  readonly pages: number;
  readonly pickups: number;
}

export const HISTORY_SIZES: Readonly<Record<"full" | "quick", HistorySizes>> = {
  full: { rounds: 5, finished: [100, 10_000], pages: 100, pickups: 10 },
  quick: { rounds: 1, finished: [100, 10_000], pages: 20, pickups: 3 },
};

const ENVIRONMENTS = 20;
const PAGE_SIZE = 50;
const THOUSAND = 1_000;

/** Services in whose databases more and more runs have ended: what their lists and their queues make of it. */
export async function measureHistory(servers: ProvisioningServers, sizes: HistorySizes): Promise<Findings> {
  const [few, many] = sizes.finished;
  const shortHistory = await openProvisioningService(servers, `history_${few}`);
  try {
    const longHistory = await openProvisioningService(servers, `history_${many}`);
    try {
      const contestants = [
        await withHistory(shortHistory, nameOf(few), few, sizes),
        await withHistory(longHistory, nameOf(many), many, sizes),
      ];
      await takeTurns(contestants, 1);
      return findings(await takeTurns(contestants, sizes.rounds), sizes);
    } finally {
      await longHistory.close();
    }
  } finally {
    await shortHistory.close();
  }
}

export function describeHistory({ rounds, finished, pages, pickups }: HistorySizes): string {
  return [
    `rounds ${rounds} after one that doesn't count, at ${finished.join(" and at ")} finished runs in ${ENVIRONMENTS} environments, each a service of its own`,
    `a page: ${PAGE_SIZE} runs, ${pages} a round; those that wait for approval, of whom there are none, as many`,
    `pick-up: from PlanProvisioning's transaction to that of PLANNING, ${pickups} a round, which add themselves to the history`,
  ].join("; ");
}

function findings(measured: Measured, { finished: [few, many] }: HistorySizes): Findings {
  const against = (figure: string, what: string): Finding => ({
    meaning: `${what} with ${many} finished runs in the database ÷ with ${few}; less is better`,
    spread: ratio(measured, figure, nameOf(many), nameOf(few)),
  });
  const sizes = `${shortly(many)}_vs_${shortly(few)}`;
  return {
    measured,
    headlines: {},
    ratios: {
      [`list_${sizes}`]: against("list_page_ms", "median time of ListProvisioningRuns' first page"),
      [`list_waiting_${sizes}`]: against("list_waiting_ms", "the same, of runs that wait for approval"),
      [`pickup_${sizes}`]: against("pickup_ms", "median time from PlanProvisioning to PLANNING"),
    },
  };
}

async function withHistory(
  service: ProvisioningService,
  name: string,
  finished: number,
  { pages, pickups }: HistorySizes,
): Promise<Contestant> {
  const specificationIds: string[] = [];
  for (const place of numbers(ENVIRONMENTS)) {
    specificationIds.push(await declareInNewEnvironment(service, ONE_FILE, { name: `e-${place}` }));
  }
  await addFinishedRuns(service.aside, specificationIds, finished);
  return { name, round: () => listAndPickUp(service, specificationIds, { finished, pages, pickups }) };
}

async function listAndPickUp(
  service: ProvisioningService,
  specificationIds: readonly string[],
  { finished, pages, pickups }: Pick<HistorySizes, "pages" | "pickups"> & { finished: number },
): Promise<Round> {
  const { client, aside, tenantId } = service;
  const listed = { page: new Set<number>(), waiting: new Set<number>() };
  const pageTimes = await timesOf(pages, async () => {
    listed.page.add((await client.listProvisioningRuns({ pageSize: PAGE_SIZE })).runs.length);
  });
  const waitingTimes = await timesOf(pages, async () => {
    const { runs } = await client.listProvisioningRuns({ pageSize: PAGE_SIZE, state: RunState.AWAITING_APPROVAL });
    listed.waiting.add(runs.length);
  });
  const pickupTimes: number[] = [];
  for (const specificationId of specificationIds.slice(0, pickups)) {
    const { runId } = await runToApplied(service, specificationId);
    pickupTimes.push((await phasesOf(aside, tenantId, runId)).pickup);
  }
  return {
    figures: {
      list_page_ms: quantile(pageTimes, 0.5),
      list_waiting_ms: quantile(waitingTimes, 0.5),
      pickup_ms: quantile(pickupTimes, 0.5),
    },
    async check() {
      const seen = JSON.stringify({ page: [...listed.page], waiting: [...listed.waiting] });
      if (seen !== JSON.stringify({ page: [PAGE_SIZE], waiting: [0] })) throw new Error(`pages had ${seen} runs`);
      const { rows } = await aside.query<{ ended: number }>(
        "SELECT count(*)::int AS ended FROM provisioning_run WHERE state = 'APPLIED'",
      );
      if ((rows[0]?.ended ?? 0) < finished) throw new Error(`${String(rows[0]?.ended)} of ${finished} runs are there`);
    },
  };
}

async function timesOf(count: number, call: () => Promise<void>): Promise<number[]> {
  const times: number[] = [];
  for (let done = 0; done < count; done += 1) {
    const started = performance.now();
    await call();
    times.push(performance.now() - started);
  }
  return times;
}

function nameOf(finished: number): string {
  return `history_${shortly(finished)}`;
}

/** `100`, `10k` */
function shortly(count: number): string {
  return count < THOUSAND ? String(count) : `${count / THOUSAND}k`;
}
