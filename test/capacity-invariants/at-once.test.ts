import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { amount } from "./amount.ts";
import { hold } from "./hold.ts";
import { play } from "./play.ts";
import { oneByOne, runsAtOnce } from "./runs.ts";
import { openWorld, type World } from "./world.ts";

/** Runs begin empty again, so that what is looked through after each burst stays small. */
const RUN_OPERATIONS = 2_500;
/** Far more than it takes on an idle machine. */
const MS_PER_OPERATION = 10;
/** A long test says so often how far it has come. */
const PROGRESS_EVERY = 20_000;
const MS_PER_STEP = 60;
const FIRST_MS = 60_000;
const ONE_BY_ONE_RUNS = 8;
const SHRINK_MS = 60_000;

const DESK_ANSWERS = [
  ...["acquire ACTIVE", "acquire WAITING", "acquire Exhausted", "acquire IllegalTransition", "again: ACTIVE"],
  ...["renew ACTIVE", "renew IllegalTransition", "release RELEASED", "release EXPIRED", "release CANCELLED"],
];
const COMMANDS = ["revoke REVOKED", "size done", "cordon done", "uncordon done", "drain done", "quota done"];

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

test(
  "whatever comes at once, at two processes, in whatever order and however often, the invariants hold at every commit",
  async () => {
    const tally = new Map<string, number>();
    let operations = 0;
    const told = (answer: string) => {
      tally.set(answer, (tally.get(answer) ?? 0) + 1);
      operations += 1;
      if (operations % PROGRESS_EVERY === 0 && operations < amount.operations) say(`so far over ${operations}`);
    };
    await hold({
      input: runsAtOnce(RUN_OPERATIONS),
      runs: Math.ceil(amount.operations / RUN_OPERATIONS),
      by: (run) => play(world, run, told),
    });
    say(`over ${operations}`);
    expect(operations).toBeGreaterThanOrEqual(amount.operations);
    for (const [tried, oneIn] of TRIED) {
      const times = tally.get(tried) ?? 0;
      expect([tried, times >= operations / oneIn ? "often" : `${times} of ${operations}`]).toEqual([tried, "often"]);
    }
  },
  FIRST_MS + amount.operations * MS_PER_OPERATION,
);

function say(held: string): void {
  process.stdout.write(`capacity invariants held ${held} operations, seed ${amount.seed}\n`);
}

/**
 * What must have come about, once in so many operations or more: else the runs don't try what they are for. Of commands
 * there are few, and so many fewer by chance that only their absence tells something.
 */
const TRIED: [answer: string, oneIn: number][] = [
  ...DESK_ANSWERS.map((answer): [string, number] => [answer, 500]),
  ["end done", 500],
  ...COMMANDS.map((answer): [string, number] => [answer, 20_000]),
];

test(
  "one after the other, the same operations keep the same promises",
  () =>
    hold({
      input: oneByOne,
      runs: ONE_BY_ONE_RUNS * amount.factor,
      by: (run) => play(world, run, () => undefined),
      shrinkMs: SHRINK_MS,
    }),
  FIRST_MS + SHRINK_MS + ONE_BY_ONE_RUNS * amount.factor * 40 * MS_PER_STEP,
);
