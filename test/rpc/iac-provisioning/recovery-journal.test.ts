import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Context } from "@runtime-cloud/iac-provisioning/context";
import type { EngineEvent, PlannedChange } from "@runtime-cloud/iac-provisioning/engines/engine-event";
import { type HeldRun, RunLost } from "@runtime-cloud/iac-provisioning/execution/held-run";
import { openReceiptJournal } from "@runtime-cloud/iac-provisioning/execution/receipt-journal";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { declare, type IacService, plan, startIacProvisioning, webService } from "../../_support/iac-provisioning.ts";

const RESOURCES = 1_500;

let service: IacService;
beforeAll(async () => {
  service = await startIacProvisioning({ EXECUTOR_LEASE_SECONDS: "2" });
});
afterAll(() => service.close());

test("what is heard while a write is under way goes in with the next, and a flush leaves nothing out", async () => {
  const { held, changes } = await applying();
  const { context, statements } = watched();
  const journal = await openReceiptJournal(context, held, changes);
  const opening = statements();
  expect(opening).toBe(2);
  for (const { address } of changes) {
    await journal.take({ type: "resource-started", address, action: "create" });
    await journal.take({ type: "resource-applied", address, action: "create", id: `id of ${address}`, durationMs: 1 });
  }
  await journal.flush();
  expect(await outcomes(held)).toEqual({ APPLIED: RESOURCES });
  // Of 3,000 events; with a statement for each the database would set the engine's pace.
  expect(statements() - opening).toBeLessThan(RESOURCES / 2);
});

test("an event is on its way to the database as soon as it is heard, though nothing follows it", async () => {
  const { held, changes } = await applying();
  const journal = await openReceiptJournal(service.context, held, changes);
  await journal.take(started(0));
  await journal.take(started(1));
  await until("both events", 10_000, async () => (await outcomes(held))["INDETERMINATE"] === 2 || undefined);
});

test("a database that is away for a moment costs no event", async () => {
  const { held, changes } = await applying();
  const { context, fail } = watched();
  const journal = await openReceiptJournal(context, held, changes);
  fail(3);
  await journal.take(started(0));
  await journal.take(started(1));
  await journal.flush();
  expect(await outcomes(held)).toEqual({ INDETERMINATE: 2, NOT_ATTEMPTED: RESOURCES - 2 });
});

test("an executor whose run went on to another, or is over, writes no line of it", async () => {
  const { held, changes } = await applying();
  const journal = await openReceiptJournal(service.context, held, changes);
  await service.database.provisioningRun.update({ where: { id: held.run.id }, data: { state: "INDETERMINATE" } });
  await journal.take(started(0));
  await journal.flush();
  await service.database.provisioningRun.update({ where: { id: held.run.id }, data: { executorEpoch: 9 } });
  await journal.take(started(1));
  await expect(journal.flush()).rejects.toThrow(RunLost);
  await expect(journal.take(started(2))).rejects.toThrow(RunLost);
  await service.database.provisioningRun.update({ where: { id: held.run.id }, data: { state: "RESOLVED" } });
  const late = { ...held, run: { ...held.run, executorEpoch: 9 } };
  await expect(openReceiptJournal(service.context, late, changes)).rejects.toThrow(RunLost);
  expect(await outcomes(held)).toEqual({ INDETERMINATE: 1, NOT_ATTEMPTED: RESOURCES - 1 });
});

function started(index: number): EngineEvent {
  return { type: "resource-started", address: `terraform_data.all[${index}]`, action: "create" };
}

/** A run as it is while it applies. */
async function applying(): Promise<{ held: HeldRun; changes: PlannedChange[] }> {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const id = await plan(client, await declare(client, webService(environmentId)));
  for (const state of ["PLANNING", "APPROVED", "APPLYING"] as const) {
    await service.database.provisioningRun.update({ where: { id }, data: { state } });
  }
  const run = await service.database.provisioningRun.findUniqueOrThrow({ where: { id } });
  const specification = await service.database.specification.findUniqueOrThrow({ where: { id: run.specificationId } });
  const changes = Array.from({ length: RESOURCES }, (_, index): PlannedChange => ({
    address: `terraform_data.all[${index}]`,
    resourceType: "terraform_data",
    actions: ["create"],
    before: null,
    after: {},
  }));
  return { held: { run, specification, cause: { actor: "test", correlationId: uuidv7() } }, changes };
}

/** The service's context, whose database counts statements and is away when it is told to. */
function watched() {
  let statements = 0;
  let failures = 0;
  const { pool } = service.context;
  const query = (text: string, values: unknown[]) => {
    statements += 1;
    if (failures-- > 0) return Promise.reject(Object.assign(new Error("away"), { code: "ECONNREFUSED" }));
    return pool.query(text, values);
  };
  const counting = new Proxy(pool, {
    get: (target, name): unknown => (name === "query" ? query : Reflect.get(target, name)),
  });
  const context: Context = { ...service.context, pool: counting };
  return { context, statements: () => statements, fail: (times: number) => void (failures = times) };
}

async function outcomes({ run }: HeldRun): Promise<Record<string, number>> {
  const groups = await service.database.receiptEntry.groupBy({
    by: ["outcome"],
    where: { runId: run.id },
    _count: true,
  });
  return Object.fromEntries(groups.map(({ outcome, _count }) => [outcome, _count]));
}
