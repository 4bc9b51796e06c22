import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { amount } from "./amount.ts";
import { hold } from "./hold.ts";
import { play } from "./play.ts";
import { oneByOne } from "./runs.ts";
import { openWorld, type World } from "./world.ts";

const FIVE_MINUTES_MS = 300_000;
const RUNS = 3;
const TEST_MS = 120_000;

let worlds: World[];

beforeAll(async () => {
  worlds = [];
  for (const skew of [0, FIVE_MINUTES_MS, -FIVE_MINUTES_MS]) worlds.push(await openWorld([skew, skew]));
}, TEST_MS);
afterAll(async () => {
  for (const world of worlds) await world.close();
});

test(
  "a service whose own clock is five minutes fast, or slow, decides as one whose clock is right",
  () =>
    hold({
      input: oneByOne,
      runs: RUNS * amount.factor,
      async by(run) {
        const answers = await Promise.all(
          worlds.map(async (world) => {
            const told: string[] = [];
            await play(world, run, (answer) => void told.push(answer));
            return told;
          }),
        );
        const [right, ...wrong] = answers;
        for (const told of wrong) expect(told).toEqual(right);
      },
    }),
  TEST_MS * amount.factor,
);
