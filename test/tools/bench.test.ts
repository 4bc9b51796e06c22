import { expect, test } from "@jest/globals";

import { reportFile } from "../../bench/report.ts";
import { figureOf, joined, ratio, takeTurns, type Contestant } from "../../bench/rounds.ts";

test("each round is led by another contestant", async () => {
  const played: string[] = [];
  const contestants = ["a", "b", "c"].map((name) => contestant(name, () => void played.push(name)));
  await takeTurns(contestants, 3);
  expect(played.join("")).toBe("abcbcacab");
});

test("a round that was done wrong ends it all, and says whose and which it was", async () => {
  let rounds = 0;
  const wrong: Contestant = {
    name: "hasty",
    async round() {
      rounds += 1;
      return { figures: { events_per_second: 1e9 }, check: () => Promise.reject(new Error("nothing was handled")) };
    },
  };
  await expect(takeTurns([wrong], 5)).rejects.toThrow("hasty did round 1 wrong: Error: nothing was handled");
  expect(rounds).toBe(1);
});

test("a ratio divides within each round, so a slow round weighs on both", () => {
  const measured = { ours: { speed: [10, 100, 30] }, peer: { speed: [20, 200, 10] } };
  expect(ratio(measured, "speed", "ours", "peer")).toEqual({ median: 0.5, min: 0.5, max: 3 });
});

test("a ratio of what wasn't measured equally often is refused", () => {
  const measured = { ours: { speed: [1, 2] }, peer: { speed: [1] } };
  expect(() => ratio(measured, "speed", "ours", "peer")).toThrow("ours and peer have no speed");
  expect(() => ratio(measured, "speed", "ours", "absent")).toThrow("ours and absent have no speed");
});

test("a contestant of several comparisons keeps the figures of all", () => {
  const all = joined({ ours: { speed: [3, 1, 2] } }, { ours: { latency: [7] }, peer: { latency: [9] } });
  expect(figureOf(all, "speed", "ours").median).toBe(2);
  expect(figureOf(all, "latency", "ours").median).toBe(7);
  expect(() => figureOf(all, "speed", "peer")).toThrow("no quantile of no values");
});

test("a quick run leaves the reference's file alone", () => {
  expect(reportFile("events", true)).toMatch(/bench\/results\/events\.quick\.json$/);
  expect(reportFile("events", true)).not.toBe(reportFile("events", false));
});

function contestant(name: string, played: () => void): Contestant {
  return {
    name,
    async round() {
      played();
      return { figures: { speed: 1 }, check: async () => undefined };
    },
  };
}
