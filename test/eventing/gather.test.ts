import { expect, test } from "@jest/globals";
import { gather } from "@runtime-cloud/eventing/gather";

/** Batches that end when the test says so. */
function heldBatches(options: { lanes?: number; largest?: number; targetMs?: number } = {}) {
  const batches: { items: readonly number[]; end: (tookMs: number) => Promise<void> }[] = [];
  let now = 0;
  const take = gather<number, string>({
    lanes: 1,
    largest: 100,
    targetMs: 10,
    ...options,
    elapsed: () => now,
    work: (items) =>
      new Promise((resolve) => {
        batches.push({
          items,
          end: async (tookMs) => {
            now += tookMs;
            resolve(items.map((item) => ({ status: "fulfilled", value: `done ${item}` })));
            await settled();
          },
        });
      }),
  });
  return { take, batches };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

test("takes an item alone when nothing else waits, and answers its result", async () => {
  const { take, batches } = heldBatches();
  const result = take(7);
  await settled();
  expect(batches.map(({ items }) => items)).toEqual([[7]]);
  await batches[0]?.end(1);
  expect(await result).toBe("done 7");
});

test("gathers what comes while a batch is in work, in order, and gives each its own result", async () => {
  const { take, batches } = heldBatches();
  const first = take(0);
  await settled();
  const later = [1, 2, 3].map(take);
  await settled();
  expect(batches).toHaveLength(1);
  await batches[0]?.end(1);
  expect(batches[1]?.items).toEqual([1, 2, 3]);
  await batches[1]?.end(1);
  expect(await Promise.all([first, ...later])).toEqual(["done 0", "done 1", "done 2", "done 3"]);
});

test("works on as many batches at once as it has lanes", async () => {
  const { take, batches } = heldBatches({ lanes: 2 });
  for (const item of numbers(3)) {
    void take(item);
    await settled();
  }
  expect(batches.map(({ items }) => items)).toEqual([[0], [1]]);
});

test("makes batches larger while they are quick, up to the largest, and smaller when they take too long", async () => {
  const { take, batches } = heldBatches({ largest: 20 });
  for (const item of numbers(100)) void take(item);
  await settled();
  for (const [index, tookMs] of [1, 1, 1, 50, 50, 1].entries()) await batches[index]?.end(tookMs);
  expect(batches.map(({ items }) => items.length)).toEqual([8, 16, 20, 20, 10, 5, 10]);
});

test("fails each item of a batch that fails as a whole, and goes on with the next", async () => {
  let calls = 0;
  const take = gather<number, number>({
    lanes: 1,
    largest: 10,
    targetMs: 10,
    work: async (items) => {
      calls += 1;
      if (calls === 1) throw new Error("the database is away");
      return items.map((value) => ({ status: "fulfilled", value }));
    },
  });
  await expect(Promise.all([take(1), take(2)])).rejects.toThrow("the database is away");
  expect(await take(3)).toBe(3);
});
