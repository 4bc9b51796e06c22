import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { commit } from "@runtime-cloud/eventing/commit";
import { accept } from "@runtime-cloud/eventing/decision";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { until } from "@runtime-cloud/local-servers/until";
import { IllegalTransition, StaleRow } from "@runtime-cloud/service-kit/errors";
import { quota } from "@runtime-cloud/state-machines/quota";

import { cause, createQuota, raiseQuota, setNewQuota } from "./quotas.ts";
import { openServiceDatabase, type ServiceDatabase } from "./service-database.ts";

let database: ServiceDatabase;
beforeAll(async () => {
  database = await openServiceDatabase();
});
afterAll(() => database.close());

test("writes the row, its history and its event together", async () => {
  const created = await setNewQuota(database, "tenant-a", 3);
  const raised = await unitOfWork(database.context, { ...cause, causationId: "event-1" }, (unit) =>
    raiseQuota(unit, created.id),
  );

  expect(raised).toMatchObject({ version: 1, concurrentRuns: 4, state: "ACTIVE" });
  const history = await database.client.transition.findMany({
    where: { aggregateId: created.id },
    orderBy: { version: "asc" },
  });
  expect(history).toMatchObject([
    {
      aggregate: "Quota",
      version: 0,
      fromState: "[*]",
      event: "create",
      toState: "ACTIVE",
      actor: "operator-1",
      causationId: null,
    },
    {
      aggregate: "Quota",
      version: 1,
      fromState: "ACTIVE",
      event: "set",
      toState: "ACTIVE",
      correlationId: "request-1",
      causationId: "event-1",
    },
  ]);
  const outbox = await database.client.outboxMessage.findMany({
    where: { subject: created.id },
    orderBy: { position: "asc" },
  });
  expect(outbox.map(({ envelope }) => envelope)).toMatchObject([
    {
      specversion: "1.0",
      source: "/runtime-cloud/ExecutionCapacityService",
      type: "capacity.quotas.v1.quota-changed",
      subject: created.id,
      tenantid: "tenant-a",
      correlationid: "request-1",
      aggregateversion: 0,
      dataschema: "runtimecloud.events.v1.QuotaChanged",
      data: { quotaId: created.id, tenantId: "tenant-a", concurrentRuns: 3 },
    },
    { aggregateversion: 1, causationid: "event-1", data: { concurrentRuns: 4 } },
  ]);
});

test("rolls everything back when the database knows no such transition", async () => {
  const created = await setNewQuota(database, "tenant-b");
  const invented = unitOfWork(database.context, cause, (unit) => {
    const accepted = accept(quota, created, { type: "set", concurrentRuns: 9, concurrentSandboxes: 9, weight: 9 });
    return commit(unit, { ...accepted, event: "conjure" }, (columns) =>
      unit.tx.quota.update({ where: { id: created.id }, data: { ...columns, version: { increment: 1 } } }),
    );
  });

  await expect(invented).rejects.toThrow(/Quota has no transition from ACTIVE by conjure/);
  expect(await database.client.quota.findUnique({ where: { id: created.id } })).toEqual(created);
  expect(await database.client.outboxMessage.count({ where: { subject: created.id } })).toBe(1);
  expect(await database.client.transition.count({ where: { aggregateId: created.id } })).toBe(1);
});

test("reports a version that moved as StaleRow", async () => {
  const created = await setNewQuota(database, "tenant-c");
  let tries = 0;
  const stale = unitOfWork(database.context, cause, async (unit) => {
    tries += 1;
    const accepted = accept(quota, created, { type: "retire" });
    return commit(unit, accepted, (columns) =>
      unit.tx.quota.update({ where: { id: created.id, version: 7 }, data: { ...columns, version: { increment: 1 } } }),
    );
  });

  await expect(stale).rejects.toBeInstanceOf(StaleRow);
  expect(tries).toBeGreaterThan(1);
});

test("lets the loser of a race read and decide again", async () => {
  const created = await setNewQuota(database, "tenant-d", 1);
  await Promise.all([1, 2, 3].map(() => unitOfWork(database.context, cause, (unit) => raiseQuota(unit, created.id))));

  const row = await database.client.quota.findUniqueOrThrow({ where: { id: created.id } });
  expect(row).toMatchObject({ version: 3, concurrentRuns: 4 });
  const versions = await database.client.transition.findMany({
    where: { aggregateId: created.id },
    select: { version: true },
    orderBy: { version: "asc" },
  });
  expect(versions.map(({ version }) => version)).toEqual([0, 1, 2, 3]);
});

test("refuses what the machine refuses, saying what it would have taken", async () => {
  const created = await setNewQuota(database, "tenant-e");
  const retired = { ...created, state: "RETIRED" as const };
  expect(() => accept(quota, retired, { type: "retire" })).toThrow(IllegalTransition);
  expect(() => accept(quota, retired, { type: "retire" })).toThrow(
    `Quota ${created.id} is RETIRED, which is final: retire refused`,
  );
});

test("gives hints after the commit only, and survives a hint that fails", async () => {
  const seen: string[] = [];
  const created = await unitOfWork(database.context, cause, async (unit) => {
    unit.after(() => Promise.reject(new Error("Redis is away")));
    const row = await createQuota(unit, "tenant-f");
    unit.after(async () => {
      const committed = await database.client.quota.count({ where: { id: row.id } });
      seen.push(`${committed} committed`);
    });
    return row;
  });
  await until("the hint", 15_000, () => seen[0]);
  expect(seen).toEqual(["1 committed"]);

  const failed = unitOfWork(database.context, cause, async (unit) => {
    unit.after(() => Promise.resolve(void seen.push("hint of a rolled back unit")));
    await raiseQuota(unit, created.id);
    throw new Error("changed our mind");
  });
  await expect(failed).rejects.toThrow("changed our mind");
  expect(seen).toHaveLength(1);
});

test("says once, after the commit, that there are events; not of a transaction that is undone or announces none", async () => {
  const seen: number[] = [];
  const context = {
    ...database.context,
    announced: () => void database.client.quota.count({ where: { tenantId: "tenant-told" } }).then((n) => seen.push(n)),
  };
  await unitOfWork(context, cause, (unit) => unit.tx.quota.count());
  const undone = unitOfWork(context, cause, async (unit) => {
    await createQuota(unit, "tenant-told");
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  await unitOfWork(context, cause, async (unit) => {
    const { id } = await createQuota(unit, "tenant-told");
    await raiseQuota(unit, id);
  });
  await until("it is told", 15_000, () => (seen.length > 0 ? true : undefined));
  expect(seen).toEqual([1]);
});
