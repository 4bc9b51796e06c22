import { isDeepStrictEqual } from "node:util";
import pg from "pg";
import type { Findings } from "../report.ts";
import { type Contestant, figureOf, type Measured, type Round, takeTurns } from "../rounds.ts";
import type { BenchServers } from "../servers.ts";
import { quantile } from "../spread.ts";
import { manyResources } from "./many-resources.ts";
import { type RowWrites, writesDuring } from "./row-writes.ts";
import { openTakingIn, type TakenIn, type TakingIn } from "./taking-in.ts";

export interface DiffSizes {
  readonly rounds: number;
  /** Of each environment in each round. */
  readonly looks: number;
  readonly resources: number;
  /** How many of them are others in each look at the environment that changes. */
  readonly moved: number;
}

export const DIFF_SIZES: Readonly<Record<"full" | "quick", DiffSizes>> = {
  full: { rounds: 5, looks: 10, resources: 5_000, moved: 50 },
  quick: { rounds: 2, looks: 5, resources: 5_000, moved: 50 },
};

const UNCHANGED = "diff_unchanged";
const MOVED = "diff_moved";

/** An observation of very many resources against the last one: what it takes to take it in, and what is written. */
export async function measureDiff(servers: BenchServers, sizes: DiffSizes): Promise<Findings> {
  const databaseUrl = await servers.database("runtime-environment", "environment_diff");
  const takingIn = openTakingIn(databaseUrl);
  const aside = new pg.Pool({ connectionString: databaseUrl });
  try {
    const contestants = [
      await contestant(UNCHANGED, { takingIn, aside, sizes: { ...sizes, moved: 0 } }),
      await contestant(MOVED, { takingIn, aside, sizes }),
    ];
    await takeTurns(contestants, 1);
    return findings(await takeTurns(contestants, sizes.rounds), sizes);
  } finally {
    await takingIn.close();
    await aside.end();
  }
}

export function describeDiff({ rounds, looks, resources, moved }: DiffSizes): string {
  return [
    `rounds ${rounds} of ${looks} looks at an environment of ${resources} resources where nothing moves, and at one where ${moved} are others each time, after one that doesn't count`,
    "from the engine's decoded answer to the end of the look, in this process: mapped, compared, written; the CPU is this process's",
    "of the unchanged one PostgreSQL's own counters say that a look writes two rows, the inventory's and the report's times",
  ].join("; ");
}

function findings(measured: Measured, { resources, moved }: DiffSizes): Findings {
  const headline = (what: string, figure: string, name: string) => ({
    meaning: `median ${what} of taking in an observation of ${resources} resources, ${name === MOVED ? `${moved} of them moved` : "nothing moved"}, in ms; less is better`,
    spread: figureOf(measured, figure, name),
  });
  return {
    measured,
    headlines: {
      diff_unchanged_ms: headline("time", "taking_in_ms", UNCHANGED),
      diff_unchanged_cpu_ms: headline("CPU", "taking_in_cpu_ms", UNCHANGED),
      diff_moved_ms: headline("time", "taking_in_ms", MOVED),
      diff_moved_cpu_ms: headline("CPU", "taking_in_cpu_ms", MOVED),
    },
    ratios: {},
  };
}

async function contestant(name: string, stage: Stage): Promise<Contestant> {
  const { takingIn, sizes } = stage;
  const { applied, move } = manyResources(sizes.resources);
  const environmentId = await takingIn.environment(applied);
  const look = () => {
    move(sizes.moved);
    return takingIn.look(environmentId);
  };
  // All of them are new to the first one.
  await look();
  return { name, round: () => looksOf(look, stage) };
}

async function looksOf(look: () => Promise<TakenIn>, { takingIn, aside, sizes }: Stage): Promise<Round> {
  const taken: TakenIn[] = [];
  const writes = await writesDuring({ written: takingIn.pool, aside }, async () => {
    for (let done = 0; done < sizes.looks; done += 1) taken.push(await look());
  });
  return {
    figures: {
      taking_in_ms: quantile(
        taken.map(({ wallMs }) => wallMs),
        0.5,
      ),
      taking_in_cpu_ms: quantile(
        taken.map(({ cpuMs }) => cpuMs),
        0.5,
      ),
      rows_written_per_look: Object.values(writes).reduce((sum, count) => sum + count, 0) / sizes.looks,
    },
    check: async () => checkWritten(writes, taken, sizes),
  };
}

/** Throws unless each look changed what it should, and wrote no rows but those. */
function checkWritten(writes: RowWrites, taken: readonly TakenIn[], { looks, moved }: DiffSizes): void {
  if (taken.some(({ changed }) => changed !== moved > 0))
    throw new Error(`a look took ${moved} moves for something else`);
  const times = { inventory: looks, observer_report: looks };
  const isRight = moved === 0 ? isDeepStrictEqual(writes, times) : writes.resource === moved * looks;
  if (!isRight) throw new Error(`${looks} looks that found ${moved} moved wrote ${JSON.stringify(writes)}`);
}

interface Stage {
  readonly takingIn: TakingIn;
  readonly aside: pg.Pool;
  readonly sizes: DiffSizes;
}
