import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { deadlineCause } from "@runtime-cloud/eventing/cause";
import {
  MAX_COMPONENTS,
  type Observation,
  ObservationFailed,
  type ObservedComponent,
  type Observer,
} from "@runtime-cloud/runtime-environment/observers/observer";
import type { Clock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";

/** How the other side is: as it should be, not there, silent, answering for a part, answering without end. */
export type Condition = "well" | "gone" | "hanging" | "half" | "flooding";

/** An observer, and the other side that it looks at. */
export interface ObservedSide {
  observer: Observer;
  /** What it sees while the other side is well: at least two components. */
  expected: readonly ObservedComponent[];
  /** Puts the other side into one of the conditions that the suite is told. */
  turn(condition: Condition): void | Promise<void>;
  /** What no text may show: secrets, and addresses. */
  hidden: readonly string[];
  close(): Promise<void>;
}

/** What a look may take, and how much longer a busy machine may take to notice. */
const TIMEOUT_MS = 1_000;
const SLACK_MS = 3_000;
const place = { id: "environment-1", tenantId: "tenant-1" };

/**
 * What every observer promises. `conditions` are those, beside `well`, that its other side can be in; `observedAt` is
 * for one that is told when it looked.
 */
export function observerConformance(name: string, { conditions, start, observedAt }: Suite): void {
  const clock = countingClock();
  let side: ObservedSide;
  beforeAll(async () => {
    side = await start(clock);
  });
  afterAll(() => side.close());

  const look = (limits: { signal?: AbortSignal; timeoutMs?: number } = {}) =>
    side.observer.observe(place, { cause: deadlineCause("observation", uuidv7), timeoutMs: 5_000, ...limits });
  const promise = (text: string, on: Condition, body: () => Promise<void>) => {
    if (on !== "well" && !conditions.includes(on)) return;
    test(`the ${name} observer ${text}`, async () => {
      await side.turn(on);
      await body();
    });
  };

  promise("has a name that its reports are kept under", "well", async () => {
    expect(side.observer.name).toMatch(/^[a-z][a-z-]{0,39}$/);
  });

  promise("says what is there, and that it saw all of it", "well", async () => {
    const seen = await look();
    expect(byName(seen.components)).toMatchObject(byName(side.expected));
    expect(failuresIn(seen)).toEqual([]);
    expect(seen.unseen ?? []).toEqual([]);
    expectHidden(reasonsIn(seen).join(), side.hidden);
    expectKept(seen);
  });

  promise("says when looking began", "well", async () => {
    const before = clock.reading();
    const { at } = await look();
    expect(at).toEqual(observedAt ?? new Date(before + 1));
  });

  promise("sees the same in two looks at once", "well", async () => {
    const [one, other] = await Promise.all([look(), look()]);
    expect(byName(one.components)).toEqual(byName(other.components));
    expect(byName(one.components)).toMatchObject(byName(side.expected));
  });

  promise("says that it couldn't look, never that nothing is there", "gone", async () => {
    const failure = await failureOf(look());
    expect(failure).toBeInstanceOf(ObservationFailed);
    expectHidden(String(failure), side.hidden);
  });

  promise("gives up on a silent other side when its time is over", "hanging", async () => {
    const began = performance.now();
    const failure = await failureOf(look({ timeoutMs: TIMEOUT_MS }));
    expect(performance.now() - began).toBeLessThan(TIMEOUT_MS + SLACK_MS);
    expect(failure).toBeInstanceOf(ObservationFailed);
    expectHidden(String(failure), side.hidden);
  });

  promise("stops at once when the look is aborted", "hanging", async () => {
    const stop = new AbortController();
    const looking = failureOf(look({ signal: stop.signal, timeoutMs: 60_000 }));
    stop.abort(new Error("stopping"));
    const began = performance.now();
    await looking;
    expect(performance.now() - began).toBeLessThan(SLACK_MS);
    await expect(look({ signal: AbortSignal.abort(new Error("stopped")) })).rejects.toThrow();
  });

  promise("says what it saw of half an answer, and that there is more", "half", async () => {
    const seen = await look({ timeoutMs: TIMEOUT_MS });
    const names = seen.components.map(({ name }) => name);
    const expected = side.expected.filter(({ name }) => names.includes(name));
    expect(names.length).toBeGreaterThan(0);
    expect(names.length).toBeLessThan(side.expected.length);
    expect(byName(seen.components)).toMatchObject(byName(expected));
    expect(expected).toHaveLength(names.length);
    expect(failuresIn(seen)).not.toEqual([]);
    expectHidden([...failuresIn(seen), ...reasonsIn(seen)].join(), side.hidden);
    expectKept(seen);
  });

  promise("takes in no more than is kept, and ends in time", "flooding", async () => {
    const began = performance.now();
    await look({ timeoutMs: TIMEOUT_MS }).then(expectKept, (error: unknown) => {
      expect(error).toBeInstanceOf(ObservationFailed);
    });
    expect(performance.now() - began).toBeLessThan(TIMEOUT_MS + SLACK_MS);
  });

  promise("sees again once the other side is well again", "well", async () => {
    expect(byName((await look()).components)).toMatchObject(byName(side.expected));
  });
}

interface Suite {
  conditions: readonly Exclude<Condition, "well">[];
  start(clock: Clock): Promise<ObservedSide>;
  observedAt?: Date;
}

/** A clock that moves on by a millisecond with each reading. */
function countingClock(): Clock & { reading(): number } {
  let reading = Date.UTC(2026, 0, 1);
  return { now: () => new Date((reading += 1)), reading: () => reading };
}

async function failureOf(look: Promise<Observation>): Promise<unknown> {
  return look.then(
    () => new Error("the look has succeeded"),
    (error: unknown) => error,
  );
}

function failuresIn({ failure, specifications = [] }: Observation): string[] {
  return [...(failure === undefined ? [] : [failure]), ...specifications.flatMap((each) => each.failure ?? [])];
}

/** Why components aren't HEALTHY. */
function reasonsIn({ components }: Observation): string[] {
  return components.flatMap(({ healthReason }) => healthReason ?? []);
}

/** What the inventory's columns hold, and PostgreSQL takes. */
function expectKept(seen: Observation): void {
  const { components } = seen;
  expect(components.length).toBeLessThanOrEqual(MAX_COMPONENTS);
  expect(new Set(components.map(({ name }) => name)).size).toBe(components.length);
  for (const { name, componentVersion, replicasDesired, replicasReady } of components) {
    expect(name).toMatch(/^[^\p{Cc}]{1,128}$/u);
    expect(componentVersion).toMatch(/^[^\p{Cc}]{0,128}$/u);
    for (const count of [replicasDesired, replicasReady]) expect(Number.isInteger(count) && count >= 0).toBe(true);
  }
  for (const failure of failuresIn(seen)) expect(failure.length).toBeLessThanOrEqual(1_000);
}

function expectHidden(text: string, hidden: readonly string[]): void {
  for (const each of hidden) expect(text).not.toContain(each);
}

function byName(components: readonly ObservedComponent[]): Record<string, ObservedComponent> {
  return Object.fromEntries(components.map((component) => [component.name, component]));
}
