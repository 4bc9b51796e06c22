import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { deadlineCause } from "@runtime-cloud/eventing/cause";
import { engineObserver } from "@runtime-cloud/runtime-environment/observers/engine/engine-observer";
import { takeInUnchanged } from "@runtime-cloud/runtime-environment/observing/unchanged-sight";
import { readWorld } from "@runtime-cloud/runtime-environment/inventory/world-rows";
import { openDatabase } from "@runtime-cloud/service-kit/database";
import { lockEnvironment } from "@runtime-cloud/runtime-environment/inventory/inventory";
import { observeNow } from "@runtime-cloud/runtime-environment/observing/observations";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { PrismaClient } from "../../../services/runtime-environment/generated/prisma/client.ts";
import { type Applied, applied } from "../../_support/provisioning-server.ts";
import {
  type EnvironmentClient,
  type EnvironmentService,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

let service: EnvironmentService;
let tenant: EnvironmentClient;
let tenantId: string;
let environmentId: string;
/** What the service says to the database, in order. */
const statements: string[] = [];
let listening: { client: PrismaClient; close(): Promise<void> };

beforeAll(async () => {
  service = await startEnvironments();
  const { DATABASE_URL: url } = service.context.settings;
  listening = openDatabase({ url, applicationName: "test", onError: () => undefined }, (adapter) => {
    const client = new PrismaClient({ adapter, log: [{ emit: "event", level: "query" }] });
    client.$on("query", ({ query }) => void statements.push(query.trim()));
    return client;
  });
});
afterAll(async () => {
  await listening.close();
  await service.close();
});
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = await service.created(tenantId);
});

const resourcesOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    address: `module.part[${index}].terraform_data.app`,
    resourceType: "terraform_data",
    resourceId: `app-${index}`,
  }));
const release = (changes: Applied = {}) =>
  applied({
    kind: SpecificationKind.RELEASE,
    specificationId: specificationId(),
    components: [{ name: "api", version: "1.4.0", replicas: 2 }],
    ...changes,
  });
let lastSpecification = "";
const specificationId = () => (lastSpecification ||= uuidv7());
/** What one more look says to the database. */
const look = async () => {
  statements.length = 0;
  const context = { ...service.context, client: listening.client };
  const looked = await observeNow(context, environmentId, new AbortController().signal);
  const writes = statements.filter((statement) => /^(WITH|INSERT|UPDATE|DELETE)\b/.test(statement));
  return { ...looked, writes };
};
/** Rows of every table about the environment by the transaction that wrote them last. */
const written = (table: "resource" | "component" | "tracked_specification") => {
  const { database } = service;
  const tables = {
    resource: database.$queryRaw<Row[]>`SELECT address AS key, xmin::text FROM resource
      WHERE inventory_id = ${environmentId} ORDER BY address`,
    component: database.$queryRaw<Row[]>`SELECT name AS key, xmin::text FROM component
      WHERE inventory_id = ${environmentId} ORDER BY name`,
    tracked_specification: database.$queryRaw<Row[]>`SELECT kind::text AS key, xmin::text FROM tracked_specification
      WHERE inventory_id = ${environmentId} ORDER BY kind`,
  };
  return tables[table];
};
interface Row {
  key: string;
  xmin: string;
}

test.each([
  { as: "applied", drift: [] },
  { as: "drifted", drift: [{ address: "module.part[7].terraform_data.app", kind: 3, attribute: "input" }] },
])(
  "a look that finds 5,000 resources still as $as writes the times by one statement, and no other row",
  async (found) => {
    const { drift } = found;
    service.provisioning.applied.set(environmentId, [release({ resources: resourcesOf(5_000), drift })]);
    await look();
    const tables = ["resource", "component", "tracked_specification"] as const;
    const before = await Promise.all(tables.map(written));
    expect(before.map((rows) => rows.length)).toEqual([5_000, 1, 1]);

    const { changed, writes } = await look();

    expect(changed).toBe(false);
    expect(writes).toHaveLength(1);
    expect(writes[0]).toMatch(/^WITH [^]+UPDATE inventory SET observed_at/);
    expect(await Promise.all(tables.map(written))).toEqual(before);
    const { revision } = await service.database.inventory.findUniqueOrThrow({ where: { id: environmentId } });
    expect(revision).toBe(1n);
  },
);

test("of 5,000 resources only those are written that came, went or are different", async () => {
  const resources = resourcesOf(5_000);
  service.provisioning.applied.set(environmentId, [release({ resources })]);
  await look();
  const before = new Map((await written("resource")).map(({ key, xmin }) => [key, xmin]));
  const changed = [
    { ...resources[0], resourceId: "app-0b" },
    ...resources.slice(2),
    ...resourcesOf(5_001).slice(5_000),
  ];
  service.provisioning.applied.set(environmentId, [release({ resources: changed })]);

  expect(await look()).toMatchObject({ changed: true });

  const after = await written("resource");
  const moved = after.filter(({ key, xmin }) => before.get(key) !== xmin).map(({ key }) => key);
  const address = (index: number) => `module.part[${index}].terraform_data.app`;
  expect(moved).toEqual([address(0), address(5_000)].sort());
  expect(after).toHaveLength(5_000);
  expect(after.some(({ key }) => key === address(1))).toBe(false);
});

test("a change of many facts keeps the first of them, and how many more there were", async () => {
  service.provisioning.applied.set(environmentId, [release({ components: [], resources: resourcesOf(1_000) })]);
  await look();
  const [change, ...others] = await service.database.inventoryChange.findMany({
    where: { inventoryId: environmentId },
  });
  expect(others).toEqual([]);
  expect(change).toMatchObject({ revision: 1n, actor: "observer:engine" });
  const facts = Array.isArray(change?.facts) ? change.facts : [];
  // State, health, declared and applied version, and the resources.
  const more = 1_004 - (facts.length - 1);
  expect(facts.at(-1)).toEqual({ path: "/more", from: null, to: more });
  expect(facts.length).toBeGreaterThan(400);
  expect(facts.length).toBeLessThanOrEqual(501);
  expect(Buffer.byteLength(JSON.stringify(facts))).toBeLessThanOrEqual(65 * 1_024);
});

test("the resources of a kind that isn't applied any more are gone, and those of one that can't be seen stay", async () => {
  const baseline = applied({ resources: resourcesOf(3) });
  const pools = applied({ kind: SpecificationKind.WORKER_POOL, resources: [] });
  service.provisioning.applied.set(environmentId, [baseline, release({ resources: resourcesOf(2) }), pools]);
  await look();
  const unseen = applied({ ...baseline, resources: [], failure: "the state is locked" });
  service.provisioning.applied.set(environmentId, [unseen, pools]);
  await look();
  const { environment } = await tenant.getEnvironment({ environmentId });
  expect(environment?.resources.map(({ resourceId }) => resourceId)).toEqual(["app-0", "app-1", "app-2"]);
});

test("a locked environment is read with every column", async () => {
  const place = { id: environmentId, tenantId };
  const row = await service.database.inventory.findUniqueOrThrow({ where: { id: environmentId } });
  expect(await service.database.$transaction((tx) => lockEnvironment(tx, place))).toEqual(row);
});

test("a sight that moves nothing is taken in by its times only where the environment is as it was compared", async () => {
  service.provisioning.applied.set(environmentId, [release()]);
  await look();
  const { context, database } = service;
  const where = { id: environmentId };
  const inventory = await database.inventory.findUniqueOrThrow({ where });
  const known = await readWorld(database, environmentId);
  const observation = await engineObserver(context).observe(inventory, {
    ...{ cause: deadlineCause("observation", uuidv7), timeoutMs: 5_000 },
  });
  const sight = { observer: "engine", at: observation.at, observation };
  const earlier = new Date(Number(inventory.observedAt) - 1_000);
  const others = [
    takeInUnchanged(context, { ...inventory, revision: 0n }, known, sight),
    takeInUnchanged(context, { ...inventory, state: "STALE" }, known, sight),
    takeInUnchanged(context, inventory, known, { ...sight, at: earlier }),
    takeInUnchanged(context, inventory, known, { observer: "engine", at: sight.at, failure: "it is busy" }),
    takeInUnchanged(context, inventory, known, { ...sight, observation: { ...observation, components: [] } }),
  ];
  expect(await Promise.all(others)).toEqual([false, false, false, false, false]);
  expect(await database.inventory.findUniqueOrThrow({ where })).toEqual(inventory);

  const twice = [1, 2].map(() => takeInUnchanged(context, inventory, known, sight));
  expect((await Promise.all(twice)).sort()).toEqual([false, true]);
  const { observedAt, revision } = await database.inventory.findUniqueOrThrow({ where });
  expect({ observedAt, revision }).toEqual({ observedAt: sight.at, revision: inventory.revision });
});
