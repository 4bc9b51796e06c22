import type { Findings } from "../report.ts";
import { ratio, takeTurns, type Contestant } from "../rounds.ts";
import { inThousands, rowsHeldBack } from "./backlog-rows.ts";
import type { OutboxPath } from "./outbox-path.ts";

export interface BacklogSizes {
  readonly rounds: number;
  /** How large, and how often within a round: a small one is over before its time means much. */
  readonly sizes: readonly { readonly rows: number; readonly repeats: number }[];
}

const TIMEOUT_MS = 600_000;

/** Backlogs that were committed while no relay ran: how fast one that comes works them off, by their size. */
export async function measureBacklog(path: OutboxPath, { sizes, rounds }: BacklogSizes): Promise<Findings> {
  const measured = await takeTurns(
    sizes.map((size) => backlog(path, size)),
    rounds,
  );
  const [smallest, largest] = [sizes.at(0), sizes.at(-1)].map((size) => inThousands(size?.rows ?? 0));
  return {
    measured,
    headlines: {},
    ratios: {
      [`backlog_${largest}_vs_${smallest}`]: {
        meaning: `events per second from the relay's start to handled, ${largest} rows waiting ÷ ${smallest}; more is better`,
        spread: ratio(measured, "events_per_second", `backlog_${largest}`, `backlog_${smallest}`),
      },
    },
  };
}

function backlog(path: OutboxPath, { rows, repeats }: BacklogSizes["sizes"][number]): Contestant {
  return {
    name: `backlog_${inThousands(rows)}`,
    async round() {
      let ms = 0;
      for (let repeat = 0; repeat < repeats; repeat += 1) {
        await path.holdBack();
        path.ledger.clear();
        const eventIds = await rowsHeldBack(rows, path.send);
        const letGo = path.letGo();
        ms += (await path.ledger.finished(rows, TIMEOUT_MS)) - letGo;
        await path.check(eventIds);
      }
      return { figures: { events_per_second: (rows * repeats) / (ms / 1_000) }, check: async () => undefined };
    },
  };
}
