import type { Findings } from "../report.ts";
import { ratio, takeTurns, type Contestant } from "../rounds.ts";
import { decidedEvents } from "./decided-events.ts";
import type { Path, PathName } from "./path.ts";

export interface ThroughputSizes {
  readonly rounds: number;
  /** Of each path, how many events a round has: enough to take a while, and not more than that. */
  readonly sizes: Readonly<Record<PathName, number>>;
}

/** Until the code is compiled, the connections are there and the statements are planned. */
const WARM_UP_EVENTS = 500;
const TIMEOUT_MS = 120_000;
const MEANING = "events per second, committed to handled and receipted";

export async function warmUp(paths: readonly Path[], sizes: ThroughputSizes["sizes"]): Promise<void> {
  await takeTurns(
    paths.map((path) => burst(path, Math.min(WARM_UP_EVENTS, sizes[path.name]))),
    1,
  );
}

/** Many events at once: how fast they are worked off. */
export async function measureThroughput(paths: readonly Path[], { sizes, rounds }: ThroughputSizes): Promise<Findings> {
  const measured = await takeTurns(
    paths.map((path) => burst(path, sizes[path.name])),
    rounds,
  );
  const ours = (peer: PathName, meaning: string) => ({
    meaning,
    spread: ratio(measured, "events_per_second", "runtime_cloud", peer),
  });
  return {
    measured,
    headlines: {},
    ratios: {
      relay_vs_bullmq: ours(
        "bullmq",
        "events per second, outbox to handled and receipted ÷ raw addBulk to done; more is better",
      ),
      relay_vs_graphile: ours("graphile_worker", `${MEANING} ÷ graphile-worker's, its defaults; more is better`),
      relay_vs_graphile_tuned: ours("graphile_worker_tuned", `${MEANING} ÷ graphile-worker's, tuned; more is better`),
      relay_vs_pgboss: ours("pg_boss", `${MEANING} ÷ pg-boss's, its defaults, which wait 2 s a job; more is better`),
      relay_vs_pgboss_tuned: ours("pg_boss_tuned", `${MEANING} ÷ pg-boss's, tuned; more is better`),
    },
  };
}

function burst(path: Path, count: number): Contestant {
  return {
    name: path.name,
    async round() {
      const events = decidedEvents(count);
      path.ledger.clear();
      const sent = await path.send(events);
      const seconds = ((await path.ledger.finished(count, TIMEOUT_MS)) - sent) / 1_000;
      return { figures: { events_per_second: count / seconds }, check: () => path.check(events.map(({ id }) => id)) };
    },
  };
}
