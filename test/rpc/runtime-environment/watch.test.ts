import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { WatchEnvironmentResponse } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import { InventoryState } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { applied } from "../../_support/provisioning-server.ts";
import {
  type EnvironmentClient,
  type EnvironmentService,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

let service: EnvironmentService;
let tenantId: string;
let tenant: EnvironmentClient;
let environmentId: string;
const stops: AbortController[] = [];

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = await service.created(tenantId);
  service.provisioning.applied.set(environmentId, [applied()]);
  await tenant.observeEnvironment({ environmentId });
});
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

/** Follows the environment; `next` is undefined at the stream's end. */
function watching(afterRevision?: bigint, client = tenant) {
  const stop = new AbortController();
  stops.push(stop);
  const request = { environmentId, ...(afterRevision !== undefined && { afterRevision }) };
  const updates = client.watchEnvironment(request, { signal: stop.signal })[Symbol.asyncIterator]();
  const next = async (): Promise<WatchEnvironmentResponse["update"] | undefined> => {
    const step = await updates.next();
    return step.done ? undefined : step.value.update;
  };
  return {
    next,
    leave: () => stop.abort(),
    /** The next `count` messages in short: `snapshot 4`, `change 5`. */
    async told(count: number): Promise<string[]> {
      const told: string[] = [];
      while (told.length < count) told.push(inShort(await next()));
      return told;
    },
  };
}

function inShort(update: WatchEnvironmentResponse["update"] | undefined): string {
  return update?.case ? `${update.case} ${update.value.revision}` : "end";
}

const push = (replicasReady: number) =>
  tenant.observeEnvironment({
    environmentId,
    observation: {
      observedAt: timestampFromDate(new Date()),
      components: [{ name: "api", version: "1.4.0", replicasDesired: 3, replicasReady }],
    },
  });
const revision = async () =>
  (await service.database.inventory.findUniqueOrThrow({ where: { id: environmentId } })).revision;

/** Records changes in the database alone, as another process would. */
async function recordChanges(count: number): Promise<void> {
  await service.database.$transaction(async (tx) => {
    const { revision: before } = await tx.inventory.findUniqueOrThrow({ where: { id: environmentId } });
    const revisions = Array.from({ length: count }, (_, index) => before + BigInt(index + 1));
    await tx.inventoryChange.createMany({
      data: revisions.map((each) => ({
        inventoryId: environmentId,
        revision: each,
        at: new Date(),
        actor: "observer:push",
        facts: [{ path: "/health", from: "HEALTHY", to: "DEGRADED" }],
      })),
    });
    await tx.inventory.update({ where: { id: environmentId }, data: { revision: { increment: count } } });
  });
}

test("tells an environment as it is, then each change of it, once and in order", async () => {
  const watch = watching();
  const begun = await revision();
  expect(await watch.next()).toMatchObject({
    case: "snapshot",
    value: {
      environmentId,
      revision: begun,
      state: InventoryState.FRESH,
      resources: [{ address: "terraform_data.app" }],
    },
  });

  await push(3);
  const first = await watch.next();
  expect(first).toMatchObject({ case: "change", value: { revision: begun + 1n, actor: "observer:push" } });
  await push(3);
  await push(1);
  const second = await watch.next();
  expect(second).toMatchObject({ case: "change", value: { revision: begun + 2n } });
  if (second?.case !== "change") throw new Error("it is no change");
  const { facts, at } = second.value;
  expect(at).toBeDefined();
  expect(facts.find(({ path }) => path === "/components/api/replicasReady")).toMatchObject({
    from: { kind: { case: "numberValue", value: 3 } },
    to: { kind: { case: "numberValue", value: 1 } },
  });
});

test("leaves a side of a fact unset where the fact wasn't there, or is gone", async () => {
  const watch = watching(await revision());
  await push(3);
  const update = await watch.next();
  if (update?.case !== "change") throw new Error("it is no change");
  const version = update.value.facts.find(({ path }) => path === "/components/api/version");
  expect(version?.from).toBeUndefined();
  expect(version?.to).toMatchObject({ kind: { case: "stringValue", value: "1.4.0" } });
});

test("goes on after the last revision that a caller has, without a gap or a repeat", async () => {
  const left = watching();
  const begun = await revision();
  expect(await left.told(1)).toEqual([`snapshot ${begun}`]);
  await recordChanges(3);
  expect(await left.told(2)).toEqual([`change ${begun + 1n}`, `change ${begun + 2n}`]);
  left.leave();

  await recordChanges(250);
  const back = watching(begun + 2n);
  const missed = Array.from({ length: 251 }, (_, index) => `change ${begun + 3n + BigInt(index)}`);
  expect(await back.told(251)).toEqual(missed);
  await recordChanges(1);
  expect(await back.told(1)).toEqual([`change ${begun + 254n}`]);
});

test("begins anew when something in between isn't kept any more, and when the revision was never there", async () => {
  const begun = await revision();
  await recordChanges(5);
  await service.database.inventoryChange.deleteMany({
    where: { inventoryId: environmentId, revision: { lte: begun + 2n } },
  });
  expect(await watching(begun).told(1)).toEqual([`snapshot ${begun + 5n}`]);
  expect(await watching(begun + 2n).told(3)).toEqual([3n, 4n, 5n].map((count) => `change ${begun + count}`));
  const early = watching(begun + 1_000n);
  expect(await early.told(1)).toEqual([`snapshot ${begun + 5n}`]);
  await recordChanges(1);
  expect(await early.told(1)).toEqual([`change ${begun + 6n}`]);
});

test("shows a reader the environment as it is when it was so slow that changes went meanwhile", async () => {
  const begun = await revision();
  await recordChanges(250);
  const slow = watching(begun);
  expect(await slow.told(1)).toEqual([`change ${begun + 1n}`]);
  await service.database.inventoryChange.deleteMany({
    where: { inventoryId: environmentId, revision: { lte: begun + 200n } },
  });
  const rest: string[] = [];
  while (!rest.at(-1)?.startsWith("snapshot")) rest.push(...(await slow.told(1)));
  expect(rest.at(-1)).toBe(`snapshot ${begun + 250n}`);
  expect(rest.slice(0, -1)).toEqual(rest.slice(0, -1).map((_, index) => `change ${begun + 2n + BigInt(index)}`));
});

test("ends with the environment, whose end is the last that it tells", async () => {
  const watch = watching();
  const begun = await revision();
  await watch.told(1);
  await tenant.retireEnvironment({ environmentId });
  const end = await revision();
  expect(end).toBeGreaterThan(begun);
  const last = await watch.next();
  expect(last).toMatchObject({ case: "change", value: { revision: end } });
  expect(await watch.next()).toBeUndefined();

  expect(await watching().told(2)).toEqual([`snapshot ${end}`, "end"]);
  expect(await watching(begun).told(2)).toEqual([`change ${end}`, "end"]);
  expect(await watching(end).told(1)).toEqual(["end"]);
});

test("an environment of another tenant is as unknown as one that never was", async () => {
  const hidden = await refusal(watching(undefined, service.as(`tenant-${uuidv7()}`)));
  const known = environmentId;
  environmentId = uuidv7();
  const unknown = await refusal(watching());
  expect([hidden.code, unknown.code]).toEqual([Code.NotFound, Code.NotFound]);
  expect(hidden.rawMessage.replace(known, "<id>")).toBe(unknown.rawMessage.replace(environmentId, "<id>"));
});

async function refusal(watch: ReturnType<typeof watching>): Promise<ConnectError> {
  const outcome = await watch.next().catch((error: unknown) => ConnectError.from(error));
  if (outcome instanceof ConnectError) return outcome;
  throw new Error("the call was not refused");
}
