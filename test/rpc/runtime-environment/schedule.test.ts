import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { claimDueLooks } from "@runtime-cloud/runtime-environment/observing/schedule";
import { registerEnvironmentMetrics } from "@runtime-cloud/runtime-environment/environments/environment-metrics";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { Registry } from "prom-client";
import { applied } from "../../_support/provisioning-server.ts";
import { type EnvironmentService, startEnvironments } from "../../_support/runtime-environment.ts";

let service: EnvironmentService;

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());

const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1_000);
const dueSince = async (ids: readonly string[], seconds: number) => {
  const data = { observeAt: secondsAgo(seconds) };
  await service.database.inventory.updateMany({ where: { id: { in: [...ids] } }, data });
};
const createdFor = async (tenantId: string, count: number) => {
  const ids = [];
  for (let index = 0; index < count; index += 1) ids.push(await service.created(tenantId));
  return ids;
};
const minutes = (instants: readonly Date[]) => instants.map((at) => (at.getTime() - Date.now()) / 60_000);

test("the first looks of many new environments are spread over the interval", async () => {
  const ids = await createdFor(`tenant-${uuidv7()}`, 40);
  const rows = await service.database.inventory.findMany({ where: { id: { in: ids } } });
  const pauses = rows.map(({ observeAt, createdAt }) => (observeAt.getTime() - createdAt.getTime()) / 60_000);
  for (const pause of pauses) expect(pause > 0.24 && pause < 1.01).toBe(true);
  expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(0.4);
});

test("after an outage every environment is looked at once, and then as far apart from the others as before", async () => {
  const ids = await createdFor(`tenant-${uuidv7()}`, 3);
  for (const [index, id] of ids.entries()) await dueSince([id], 3_600 + index * 15);
  const claimed = (await claimDueLooks(service.context)).filter(({ id }) => ids.includes(id));
  expect(claimed).toHaveLength(3);
  const again = (await claimDueLooks(service.context)).filter(({ id }) => ids.includes(id));
  expect(again).toEqual([]);
  for (const { dueAt, observeAt } of claimed) {
    const [pause = 0] = minutes([observeAt]);
    expect(pause > 0 && pause <= 1.1).toBe(true);
    const intervals = (observeAt.getTime() - dueAt.getTime()) / 60_000;
    expect(intervals).toBeGreaterThan(60 / 1.1);
  }
});

test("a tenant with many due environments doesn't go before one with few", async () => {
  const [many, few] = [`tenant-${uuidv7()}`, `tenant-${uuidv7()}`];
  const crowd = await createdFor(many, 10);
  const [lone = ""] = await createdFor(few, 1);
  await dueSince(crowd, 100);
  await dueSince([lone], 50);
  const claimed = (await claimDueLooks(service.context))
    .map(({ id }) => id)
    .filter((id) => [...crowd, lone].includes(id));
  expect(claimed).toHaveLength(11);
  expect(claimed.indexOf(lone)).toBeLessThanOrEqual(1);
});

test("what is due, by schedule or by freshness, is found by an index however many environments there are", async () => {
  const tenantId = `tenant-${uuidv7()}`;
  await service.database.$executeRaw`
    INSERT INTO inventory (id, state, tenant_id, project_id, class, observe_at, observe_seconds, stale_after_seconds)
    SELECT ${tenantId} || n, 'UNOBSERVED', ${tenantId}, 'project', 'TEST', clock_timestamp() + make_interval(secs => n),
      60, 300
    FROM generate_series(60, 10060) n`;
  await service.database.$executeRaw`UPDATE inventory SET state = 'FRESH', stale_at = observe_at
    WHERE tenant_id = ${tenantId}`;
  await service.database.$executeRaw`ANALYZE inventory`;
  const plans = [
    await service.database.$queryRaw<Plan[]>`EXPLAIN (ANALYZE, TIMING OFF)
      SELECT id FROM inventory WHERE state <> 'RETIRED' AND observe_at <= (SELECT clock_timestamp())
      ORDER BY observe_at LIMIT 200 FOR UPDATE SKIP LOCKED`,
    await service.database.$queryRaw<Plan[]>`EXPLAIN (ANALYZE, TIMING OFF)
      SELECT id FROM inventory WHERE state = 'FRESH' AND stale_at <= (SELECT clock_timestamp())
      ORDER BY stale_at LIMIT 50`,
  ].map((lines) => lines.map((line) => line["QUERY PLAN"]).join("\n"));
  for (const plan of plans) {
    expect(plan).toContain("Index Cond:");
    expect(plan).not.toContain("Rows Removed by Filter");
  }
  await service.database.$executeRaw`DELETE FROM inventory WHERE tenant_id = ${tenantId}`;
});

interface Plan {
  "QUERY PLAN": string;
}

test("environments are counted by freshness, health and sync, as they are shown", async () => {
  const registry = new Registry();
  registerEnvironmentMetrics(service.context, registry);
  const tenantId = `tenant-${uuidv7()}`;
  const [drifted = "", retired = ""] = await createdFor(tenantId, 2);
  const counted = async () => {
    const metric = await registry.getSingleMetric("environments")?.get();
    return new Map(
      metric?.values.map(({ labels, value }) => [`${labels.state} ${labels.health} ${labels.sync}`, value]),
    );
  };
  const before = await counted();
  const drift = [{ address: "terraform_data.app", kind: 3, attribute: "input" }];
  service.provisioning.applied.set(drifted, [applied({ drift })]);
  await service.as(tenantId).observeEnvironment({ environmentId: drifted });
  await service.as(tenantId).retireEnvironment({ environmentId: retired });
  const after = await counted();
  const more = (key: string) => (after.get(key) ?? 0) - (before.get(key) ?? 0);
  expect(more("FRESH HEALTHY DRIFTED")).toBe(1);
  expect(more("UNOBSERVED UNKNOWN UNKNOWN")).toBe(-2);
});
