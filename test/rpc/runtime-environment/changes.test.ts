import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import { removeAll } from "@runtime-cloud/eventing/event-log/retention";
import { until } from "@runtime-cloud/local-servers/until";
import {
  removeOldChanges,
  removeSurplusChanges,
  startChangeRetention,
} from "@runtime-cloud/runtime-environment/inventory/change-retention";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { Registry } from "prom-client";
import {
  type EnvironmentClient,
  type EnvironmentService,
  refusalOf,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

const DAY_MS = 86_400_000;
const KIBIBYTE = 1_024;

let service: EnvironmentService;
let tenantId: string;
let tenant: EnvironmentClient;
let environmentId: string;

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = await service.created(tenantId);
});

const never = new AbortController().signal;

/** Changes of the environment from revision 1 on, which its revision says. */
async function recorded(count: number, { daysAgo = 0, value = "1.0.0", inventoryId = environmentId } = {}) {
  const { revision } = await service.database.inventory.findUniqueOrThrow({ where: { id: inventoryId } });
  await service.database.inventoryChange.createMany({
    data: Array.from({ length: count }, (_, index) => ({
      inventoryId,
      revision: revision + BigInt(index + 1),
      at: new Date(Date.now() - daysAgo * DAY_MS),
      actor: "observer:engine",
      facts: [{ path: "/components/api/version", from: null, to: value }],
    })),
  });
  await service.database.inventory.update({
    where: { id: inventoryId },
    data: { revision: { increment: count } },
  });
}

async function kept(inventoryId = environmentId): Promise<number[]> {
  const rows = await service.database.inventoryChange.findMany({
    where: { inventoryId },
    orderBy: { revision: "asc" },
    select: { revision: true },
  });
  return rows.map(({ revision }) => Number(revision));
}

/** Every page of the list, by revisions. */
async function pages(pageSize: number): Promise<number[][]> {
  const read: number[][] = [];
  let pageToken = "";
  do {
    const page = await tenant.listInventoryChanges({ environmentId, pageSize, pageToken });
    read.push(page.changes.map(({ revision }) => Number(revision)));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return read;
}

test("changes are listed newest first, page by page, and a change that comes meanwhile moves no page", async () => {
  await recorded(5);
  expect(await pages(2)).toEqual([[5, 4], [3, 2], [1]]);
  const first = await tenant.listInventoryChanges({ environmentId, pageSize: 2 });
  expect(first.changes[0]).toMatchObject({
    revision: 5n,
    actor: "observer:engine",
    facts: [{ path: "/components/api/version", to: { kind: { case: "stringValue", value: "1.0.0" } } }],
  });
  expect(first.changes[0]?.facts[0]?.from).toBeUndefined();
  await recorded(1);
  const { nextPageToken: pageToken } = first;
  const second = await tenant.listInventoryChanges({ environmentId, pageSize: 2, pageToken });
  expect(second.changes.map(({ revision }) => revision)).toEqual([3n, 2n]);
});

test("large changes come in smaller pages, all of them", async () => {
  await recorded(10, { value: "x".repeat(300 * KIBIBYTE) });
  const read = await pages(10);
  expect(read.flat()).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
  expect(read.every(({ length }) => length > 0 && length <= 4)).toBe(true);
});

test("an environment of another tenant, and a token of another environment, are refused", async () => {
  await recorded(3);
  const { nextPageToken: pageToken } = await tenant.listInventoryChanges({ environmentId, pageSize: 1 });
  const other = await service.created(tenantId);
  const foreign = await refusalOf(tenant.listInventoryChanges({ environmentId: other, pageToken }));
  expect([foreign.code, foreign.rawMessage]).toEqual([
    Code.InvalidArgument,
    expect.stringMatching(/^pageToken: belongs to a list with other filters/),
  ]);
  const hidden = await refusalOf(service.as(`tenant-${uuidv7()}`).listInventoryChanges({ environmentId }));
  expect([hidden.code, hidden.rawMessage]).toEqual([Code.NotFound, `environment ${environmentId} does not exist`]);
});

test("a change that has outlived its days goes, whatever its environment's number of them", async () => {
  await recorded(2, { daysAgo: 31 });
  await recorded(2, { daysAgo: 29 });
  expect(await removeAll(() => removeOldChanges(service.context.pool, 30), never)).toBe(2);
  expect(await kept()).toEqual([3, 4]);
  expect(await pages(50)).toEqual([[4, 3]]);
});

test("of each environment the newest changes stay, however young the others are", async () => {
  const quiet = await service.created(tenantId);
  await recorded(2_500);
  await recorded(3, { inventoryId: quiet });
  // More than one batch of them.
  await removeAll(() => removeSurplusChanges(service.context.pool, 3), never);
  expect(await kept()).toEqual([2_498, 2_499, 2_500]);
  expect(await kept(quiet)).toEqual([1, 2, 3]);
});

test("retention goes by itself, and counts what it removes", async () => {
  await recorded(2, { daysAgo: 31 });
  await recorded(1);
  const registry = new Registry();
  const retention = startChangeRetention(service.context, registry);
  await until("the old changes to go", 20_000, async () => (await kept()).length === 1 || undefined);
  await retention.stop();
  expect(await registry.metrics()).toContain('inventory_changes_removed_total{reason="age"} 2');
});
