import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import {
  SetQuotaRequestSchema,
  SetQuotaResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/quotas_pb";
import { once } from "@runtime-cloud/eventing/idempotency";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import { cause, createQuota } from "./quotas.ts";
import { openServiceDatabase, type ServiceDatabase } from "./service-database.ts";

const method = ExecutionCapacityService.method.setQuota;
let database: ServiceDatabase;
beforeAll(async () => {
  database = await openServiceDatabase();
});
afterAll(() => database.close());

/** A command as a service's handler runs it; counts its effects as quotas of the tenant. */
function setQuota(tenantId: string, idempotencyKey: string, concurrentRuns = 1, work?: () => Promise<void>) {
  const request = create(SetQuotaRequestSchema, { idempotencyKey, concurrentRuns });
  return unitOfWork(database.context, cause, (unit) =>
    once(unit, { tenantId, method, request }, async () => {
      const { id } = await createQuota(unit, tenantId, concurrentRuns);
      await work?.();
      return create(SetQuotaResponseSchema, { quota: { quotaId: id, concurrentRuns } });
    }),
  );
}
const effects = (tenantId: string) => database.client.quota.count({ where: { tenantId } });

test("gives the first response again to the same key, with one effect", async () => {
  const first = await setQuota("tenant-a", "key-1");
  const again = await setQuota("tenant-a", "key-1");
  expect(again).toEqual(first);
  expect(await effects("tenant-a")).toBe(1);
});

test("gives both of two at once the one result", async () => {
  const [first, second, third] = await Promise.all([1, 2, 3].map(() => setQuota("tenant-b", "key-1")));
  expect(second).toEqual(first);
  expect(third).toEqual(first);
  expect(await effects("tenant-b")).toBe(1);
});

test("refuses the key for another request, naming the field", async () => {
  await setQuota("tenant-c", "key-1", 1);
  const other = setQuota("tenant-c", "key-1", 2);
  await expect(other).rejects.toBeInstanceOf(InvalidInput);
  await expect(setQuota("tenant-c", "key-1", 2)).rejects.toThrow(/^idempotencyKey: /);
  expect(await effects("tenant-c")).toBe(1);
});

test("is nothing to another tenant's same key", async () => {
  await setQuota("tenant-d", "key-1");
  await setQuota("tenant-e", "key-1");
  expect([await effects("tenant-d"), await effects("tenant-e")]).toEqual([1, 1]);
});

test("keeps no key of a command that failed", async () => {
  const failing = setQuota("tenant-f", "key-1", 1, () => Promise.reject(new Error("disk full")));
  await expect(failing).rejects.toThrow("disk full");
  expect(await effects("tenant-f")).toBe(0);
  await setQuota("tenant-f", "key-1");
  expect(await effects("tenant-f")).toBe(1);
});

test("just works without a key", async () => {
  await setQuota("tenant-g", "");
  expect(await database.client.idempotencyKey.count({ where: { tenantId: "tenant-g" } })).toBe(0);
});
