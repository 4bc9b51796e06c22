import { expect, test } from "@jest/globals";
import {
  afterFailure,
  isRipe,
  jitterOf,
  NO_FAILURES,
} from "@runtime-cloud/runtime-environment/observing/observer-backoff";

const at = new Date("2026-11-30T12:00:00.000Z");
const pausesOf = (jitter: number, times: number) => {
  let attempts = NO_FAILURES;
  return Array.from({ length: times }, () => {
    attempts = afterFailure(attempts, at, jitter);
    return (Number(attempts.retryAt) - Number(at)) / 1_000;
  });
};

test("an observer that goes on failing is asked after 5 s, then twice as long each time, up to 10 min", () => {
  expect(pausesOf(0, 9)).toEqual([5, 10, 20, 40, 80, 160, 320, 600, 600]);
});

test("a pause is up to half of it shorter, by an environment's own share", () => {
  expect(pausesOf(1, 3)).toEqual([2.5, 5, 10]);
  const shares = ["a/http", "b/http", "c/http"].map(jitterOf);
  expect(new Set(shares).size).toBe(3);
  for (const share of shares) expect(share >= 0 && share <= 1).toBe(true);
  expect(jitterOf("a/http")).toBe(shares[0]);
});

test("failing for years is counted, and no pause is endless", () => {
  const { failures, retryAt } = afterFailure({ failures: 100_000 }, at, 0);
  expect({ failures, pause: Number(retryAt) - Number(at) }).toEqual({ failures: 100_001, pause: 600_000 });
});

test("an observer is left out until its time has come, and never when it has not failed", () => {
  const attempts = afterFailure(NO_FAILURES, at, 0);
  const [before, then] = [4_999, 5_000].map((ms) => new Date(at.getTime() + ms));
  expect(isRipe(attempts, before ?? at)).toBe(false);
  expect(isRipe(attempts, then ?? at)).toBe(true);
  expect(isRipe(NO_FAILURES, at)).toBe(true);
});
