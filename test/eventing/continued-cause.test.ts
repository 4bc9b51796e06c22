import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { continuedCause } from "@runtime-cloud/eventing/continued-cause";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";

import { cause, raiseQuota, setNewQuota } from "./quotas.ts";
import { openServiceDatabase, type ServiceDatabase } from "./service-database.ts";

let database: ServiceDatabase;
beforeAll(async () => {
  database = await openServiceDatabase();
});
afterAll(() => database.close());

const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;

test("what is done later goes on with the newest transition by the event that asked for it", async () => {
  const { id } = await setNewQuota(database, "tenant-a");
  for (const correlationId of ["request-2", "request-3"]) {
    const asking = { ...cause, correlationId, causationId: "event-1", traceparent };
    await unitOfWork(database.context, asking, (unit) => raiseQuota(unit, id));
  }
  const quota = { tenantId: "tenant-a", aggregate: "Quota", id };
  expect(await continuedCause(database.client, { ...quota, event: "set" }, "deadline:later")).toEqual({
    actor: "deadline:later",
    correlationId: "request-3",
    causationId: "event-1",
    traceparent,
  });
  expect(await continuedCause(database.client, { ...quota, event: "create" }, "deadline:later")).toEqual({
    actor: "deadline:later",
    correlationId: "request-1",
  });
});

test("a transition that never was, or is another tenant's, is nothing to go on with", async () => {
  const { id } = await setNewQuota(database, "tenant-b");
  const quota = { tenantId: "tenant-b", aggregate: "Quota", id, event: "create" };
  expect(await continuedCause(database.client, { ...quota, event: "retire" }, "later")).toBeUndefined();
  expect(await continuedCause(database.client, { ...quota, tenantId: "tenant-c" }, "later")).toBeUndefined();
});
