import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { amount } from "./amount.ts";
import { hold } from "./hold.ts";
import { bursts, oneByOne } from "./operations.ts";
import { play } from "./play.ts";
import { openWorld, type World } from "./world.ts";

/** Runs begin empty again, so that what is looked through after each burst stays small. */
const RUN_OPERATIONS = 1_250;
/** Far more than it takes on an idle machine. */
const MS_PER_OPERATION = 30;
const FIRST_MS = 60_000;
const ONE_BY_ONE_RUNS = 8;
const SHRINK_MS = 60_000;

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

test(
  "whatever comes at once, at two processes, in whatever order and however often, the invariants hold at every commit",
  async () => {
    const tally = new Map<string, number>();
    const told = (answer: string) => void tally.set(answer, (tally.get(answer) ?? 0) + 1);
    await hold({
      input: bursts({ operations: RUN_OPERATIONS, cuts: true }),
      runs: Math.ceil(amount.operations / RUN_OPERATIONS),
      by: (run) => play(world, run, told),
    });
    const operations = [...tally.values()].reduce((sum, count) => sum + count, 0);
    process.stdout.write(`capacity invariants held over ${operations} operations, seed ${amount.seed}\n`);
    expect(operations).toBeGreaterThanOrEqual(amount.operations);
    for (const tried of TRIED) expect([tried, share(tally, tried, operations)]).toEqual([tried, "often"]);
  },
  FIRST_MS + amount.operations * MS_PER_OPERATION,
);

/** What a run that tries something does a lot of. */
const TRIED = [
  ...["acquire ACTIVE", "acquire WAITING", "acquire Exhausted", "acquire IllegalTransition", "again: ACTIVE"],
  ...["renew ACTIVE", "release RELEASED", "release EXPIRED", "release CANCELLED", "revoke REVOKED", "end done"],
];
const OFTEN = 0.002;

function share(tally: ReadonlyMap<string, number>, kind: string, operations: number): string {
  return (tally.get(kind) ?? 0) >= operations * OFTEN ? "often" : `${tally.get(kind) ?? 0} of ${operations}`;
}

test(
  "one after the other, the same operations keep the same promises",
  () =>
    hold({
      input: oneByOne,
      runs: ONE_BY_ONE_RUNS * amount.factor,
      by: (run) => play(world, run, () => undefined),
      shrinkMs: SHRINK_MS,
    }),
  FIRST_MS + SHRINK_MS + ONE_BY_ONE_RUNS * amount.factor * 40 * MS_PER_OPERATION,
);
