import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, test } from "@jest/globals";
import { PushedObservationSchema } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import { Health } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { deadlineCause } from "@runtime-cloud/eventing/cause";
import { pushedObserver } from "@runtime-cloud/runtime-environment/observers/push/pushed-observer";
import { Denied, InvalidInput } from "@runtime-cloud/service-kit/errors";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { observerConformance } from "./conformance.ts";

const now = new Date(Date.UTC(2026, 10, 30, 12));
const hours = (count: number) => new Date(now.getTime() + count * 3_600_000);
const web = { name: "web", version: "1.4.0", replicasDesired: 3, replicasReady: 2 };
const api = { name: "api", version: "2.0.1", replicasDesired: 1, replicasReady: 1, health: Health.PROGRESSING };

type Pushed = MessageInitShape<typeof PushedObservationSchema>;

function observerOf(pushed: Pushed, more: Partial<Parameters<typeof pushedObserver>[1]> = {}) {
  const observation = create(PushedObservationSchema, { observedAt: timestampFromDate(now), ...pushed });
  const given = { now, subject: "agent-1", settings: undefined, appliedNames: [], ...more };
  return pushedObserver(observation, given);
}

function violationsOf(...given: Parameters<typeof observerOf>) {
  try {
    observerOf(...given);
  } catch (error) {
    if (error instanceof InvalidInput) return error.violations;
    throw error;
  }
  return [];
}

observerConformance("push", {
  conditions: [],
  observedAt: hours(-1),
  async start() {
    return {
      observer: observerOf({ observedAt: timestampFromDate(hours(-1)), components: [web, api] }),
      expected: [
        { name: "web", componentVersion: "1.4.0", replicasDesired: 3, replicasReady: 2, health: "DEGRADED" },
        { name: "api", componentVersion: "2.0.1", replicasDesired: 1, replicasReady: 1, health: "PROGRESSING" },
      ],
      turn: () => undefined,
      hidden: [],
      close: () => Promise.resolve(),
    };
  },
});

test("whoever may observe may report, until agents are named", async () => {
  const pushed = { components: [web] };
  const look = { cause: deadlineCause("observation", uuidv7), timeoutMs: 1_000 };
  for (const settings of [undefined, { agents: [] }, { agents: ["agent-2", "agent-1"] }]) {
    const seen = await observerOf(pushed, { settings }).observe({ id: "environment-1", tenantId: "tenant-1" }, look);
    expect(seen.components).toMatchObject([{ name: "web" }]);
  }
  const pushing = () => observerOf(pushed, { settings: { agents: ["agent-2"] } });
  expect(pushing).toThrow(Denied);
  expect(pushing).toThrow("agent-1 is no agent of this environment");
});

test("who may not report isn't told what is wrong with the report", () => {
  expect(() => observerOf({ components: [web, web] }, { settings: { agents: ["agent-2"] } })).toThrow(Denied);
});

test("a report may be a minute ahead and a day old, and no more", () => {
  const at = (date: Date) => violationsOf({ observedAt: timestampFromDate(date) });
  expect(at(new Date(now.getTime() + 60_000))).toEqual([]);
  expect(at(hours(-24))).toEqual([]);
  expect(at(new Date(now.getTime() + 60_001))).toMatchObject([
    { field: "observation.observedAt", description: expect.stringContaining("is more than 60 s ahead") },
  ]);
  expect(at(new Date(hours(-24).getTime() - 1))).toMatchObject([
    { field: "observation.observedAt", description: expect.stringContaining("is more than 24 h old") },
  ]);
});

test("a component that is named twice is refused by its field", () => {
  expect(violationsOf({ components: [web, api, web] })).toEqual([
    { field: "observation.components[2].name", description: 'names "web" a second time' },
  ]);
});

test("a component that nothing applied names is refused, once something names any", () => {
  expect(violationsOf({ components: [web, api] })).toEqual([]);
  expect(violationsOf({ components: [web, api] }, { appliedNames: ["web", "db"] })).toEqual([
    {
      field: "observation.components[1].name",
      description: 'names "api", which nothing that is applied here names: web, db are known',
    },
  ]);
});

test("absurd counts and characters that don't show are refused", () => {
  const absurd = {
    ...web,
    name: "web\u0000",
    version: "1.4\n",
    replicasDesired: 2_000_000_000,
    replicasReady: 100_001,
  };
  expect(violationsOf({ components: [absurd] }).map(({ field }) => field)).toEqual([
    "observation.components[0].name",
    "observation.components[0].version",
    "observation.components[0].replicasDesired",
    "observation.components[0].replicasReady",
  ]);
});
