import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { type NewsWanted, polledNews } from "@runtime-cloud/eventing/polled-news";
import { createLogger, silentLogger } from "@runtime-cloud/service-kit/logger";

const LOOK_EVERY_MS = 300;

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** Things that have numbers, and looks at them. */
function numbered(logger = silentLogger()) {
  const numbers = new Map<string, number>();
  const looks: string[][] = [];
  let failure: Error | undefined;
  const news = polledNews<number, NewsWanted<number>>({
    followed: "numbers",
    logger,
    async look(asked) {
      looks.push(asked.map(({ id }) => id));
      if (failure) throw failure;
      return numbers;
    },
  });
  return { numbers, looks, news, fail: (error?: Error) => void (failure = error) };
}

const above = (id: string, least: number) => ({ id, isNews: (number: number) => number > least });
const stays = new AbortController().signal;
const nextLook = () => jest.advanceTimersByTimeAsync(LOOK_EVERY_MS);

test("one look serves all that wait, each is told its own news, and nobody looks when nobody waits", async () => {
  const { numbers, looks, news } = numbered();
  numbers.set("a", 1).set("b", 1);
  const [a, b] = [news.next(above("a", 0), stays), news.next(above("b", 1), stays)];
  await nextLook();
  expect(await a).toBe(1);
  await nextLook();
  numbers.set("b", 2);
  await nextLook();
  expect(await b).toBe(2);
  expect(looks).toEqual([["a", "b"], ["b"], ["b"]]);
  expect(jest.getTimerCount()).toBe(0);
});

test("whoever leaves is told nothing, before and while it waits", async () => {
  const { news, looks } = numbered();
  const leaving = new AbortController();
  const told = news.next(above("a", 0), leaving.signal);
  leaving.abort();
  expect(await told).toBeUndefined();
  expect(await news.next(above("a", 0), leaving.signal)).toBeUndefined();
  expect(jest.getTimerCount()).toBe(0);
  expect(looks).toEqual([]);
});

test("a look that fails is said once, and costs lateness", async () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const { numbers, looks, news, fail } = numbered(createLogger({ service: "test", level: "warn", destination }));
  numbers.set("a", 1);
  fail(new Error("no database"));
  const told = news.next(above("a", 0), stays);
  await nextLook();
  await nextLook();
  expect(looks).toHaveLength(2);
  fail();
  await nextLook();
  expect(await told).toBe(1);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('"followed":"numbers"');
});
