import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { create, type JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport, type HandlerContext } from "@connectrpc/connect";
import { type CloudEvent, MalformedEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { SpecificationSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/specifications_pb";
import { PoolKind, PoolScaling, PoolState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import {
  ProvisioningKind,
  RunMode,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { eventCause } from "@runtime-cloud/eventing/cause";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { inbox } from "@runtime-cloud/execution-capacity/inbox";
import { poolResize } from "@runtime-cloud/execution-capacity/pools/pool-resize";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  attempt,
  type CapacityClient,
  type CapacityService,
  patiently,
  runOut,
  startCapacity,
} from "../../_support/execution-capacity.ts";

let service: CapacityService;
let tenantId: string;
let tenant: CapacityClient;
/** What the other side was asked, and what it says: nothing is yes. */
let asked: { method: string; tenant: string | null; request: object }[];
let refusal: ConnectError | undefined;

const specificationId = uuidv7();
const answering =
  <Response>(method: string, response: Response) =>
  (request: object, { requestHeader }: HandlerContext) => {
    asked.push({ method, tenant: requestHeader.get("runtime-cloud-tenant"), request });
    if (refusal) throw refusal;
    return response;
  };
const otherSide = createRouterTransport(({ service: serve }) => {
  serve(IaCProvisioningService, {
    declareSpecification: answering("declare", { specification: create(SpecificationSchema, { specificationId }) }),
    planProvisioning: answering("plan", {}),
  });
});

beforeAll(async () => {
  service = await startCapacity({ provisioning: createClient(IaCProvisioningService, otherSide) });
});
afterAll(() => service.close());
beforeEach(() => {
  asked = [];
  refusal = undefined;
  tenantId = `tenant-${uuidv7()}`;
  poolId = `burst-${uuidv7()}`;
  tenant = service.as(tenantId);
});

let poolId: string;
const wish = (size: number) => ({
  ...{ poolId, size, kind: PoolKind.RUN_WORKERS, scaling: PoolScaling.ELASTIC },
  ...{ environmentId: "env-1", programVersion: "worker-pool@1.0.0" },
});
const poolNow = async () => (await tenant.getWorkerPool({ poolId })).pool;
/** Asks for every pool that is due, and tells of this test's own. */
const askNow = async () => {
  const all = await runOut(poolResize(service.context));
  asked = asked.filter(({ tenant: of }) => of === tenantId);
  return all.filter((id) => id === poolId);
};

/** ProvisioningApplied of a POOL_RESIZE run, taken in as the inbox does. */
async function applied(pools: JsonValue): Promise<void> {
  const event: CloudEvent = {
    ...{ id: uuidv7(), specversion: "1.0", source: "/runtime-cloud/IaCProvisioningService" },
    ...{ type: "provisioning.runs.v1.provisioning-applied", datacontenttype: "application/json", tenantid: tenantId },
    data: {
      ...{ provisioningRunId: uuidv7(), tenantId, projectId: "p1", environmentId: "env-1" },
      ...{
        kind: "PROVISIONING_KIND_POOL_RESIZE",
        specificationVersion: 1,
        outputs: { pools },
      },
    },
  };
  const handler = inbox(service.context).find(({ name }) => name === "PoolProvisioned");
  const work = handler?.prepare(event);
  await unitOfWork(service.context, eventCause(event, "PoolProvisioned"), async (unit) => work?.(unit));
}

test("asks for an elastic pool's size under its tenant, with a key of the generation, and once", async () => {
  const { pool } = await tenant.setWorkerPool(wish(4));
  expect(pool).toMatchObject({ state: PoolState.PROVISIONING, currentSize: 0, desiredSize: 4, generation: 1 });
  expect(service.armed.at(-1)).toMatchObject({ kind: "pool-resize", label: { pool: poolId } });
  expect(await askNow()).toEqual([poolId]);
  expect(await askNow()).toEqual([]);
  const idempotencyKey = `pool-${poolId}-1`;
  expect(asked).toEqual([
    {
      method: "declare",
      tenant: tenantId,
      request: expect.objectContaining({
        ...{
          environmentId: "env-1",
          programVersion: "worker-pool@1.0.0",
          kind: SpecificationKind.WORKER_POOL,
          idempotencyKey,
        },
        parameters: { pool_id: poolId, size: 4, generation: 1 },
      }),
    },
    {
      method: "plan",
      tenant: tenantId,
      request: expect.objectContaining({
        ...{ specificationId, kind: ProvisioningKind.POOL_RESIZE, mode: RunMode.APPLY, idempotencyKey },
      }),
    },
  ]);
});

test("PoolProvisioned gives a pool its size, and a slot to those who waited for it", async () => {
  await tenant.setWorkerPool(wish(1));
  const { lease } = await tenant.acquireLease(attempt(poolId, patiently));
  await applied([{ poolId, size: 1, generation: 1 }]);
  expect(await poolNow()).toMatchObject({ state: PoolState.ACTIVE, currentSize: 1, used: 1 });
  expect((await tenant.getLease({ leaseId: lease?.leaseId ?? "" })).lease?.fencingToken).toBe(1n);
});

test("a pool that was never provisioned may be given up: nothing is asked for it any more", async () => {
  await tenant.setWorkerPool(wish(3));
  expect((await tenant.drainPool({ poolId, within: { seconds: 9n } })).pool?.state).toBe(PoolState.DRAINED);
  expect(await askNow()).toEqual([]);
  await applied([{ poolId, size: 3, generation: 1 }]);
  expect(await poolNow()).toMatchObject({ state: PoolState.DRAINED, currentSize: 0 });
  expect((await tenant.retirePool({ poolId })).pool?.state).toBe(PoolState.RETIRED);
});

test("ignores sizes of other generations, repeats and unknown pools", async () => {
  await tenant.setWorkerPool(wish(1));
  await tenant.setWorkerPool(wish(2));
  await applied([
    { poolId, size: 1, generation: 1 },
    { poolId: "unknown", size: 1, generation: 1 },
  ]);
  expect(await poolNow()).toMatchObject({ state: PoolState.PROVISIONING, generation: 2 });
  await applied([{ poolId, size: 2, generation: 2 }]);
  await applied([{ poolId, size: 2, generation: 2 }]);
  expect(await poolNow()).toMatchObject({ state: PoolState.ACTIVE, currentSize: 2 });
  const states = (await service.announced(tenantId)).filter(({ event }) => event === "WorkerPoolStateChanged");
  expect(states).toHaveLength(2);
});

test("refuses outputs that tell no size, so that the event is parked", async () => {
  await expect(applied([{ poolId, size: "two" }])).rejects.toBeInstanceOf(MalformedEvent);
});

test("notes a refusal, and asks again for the same size when it is set again", async () => {
  await tenant.setWorkerPool(wish(3));
  refusal = new ConnectError("environment env-1 is unknown", Code.NotFound);
  expect(await askNow()).toEqual([poolId]);
  expect(await poolNow()).toMatchObject({
    state: PoolState.PROVISIONING,
    note: expect.stringContaining("env-1 is unknown"),
  });
  refusal = undefined;
  expect((await tenant.setWorkerPool(wish(3))).pool).toMatchObject({ generation: 2 });
  expect(await askNow()).toEqual([poolId]);
  expect((await poolNow())?.note).toBeUndefined();
});

test("asks again later when the other side gives no answer", async () => {
  await tenant.setWorkerPool(wish(3));
  refusal = new ConnectError("connection refused", Code.Unavailable);
  expect(await askNow()).toEqual([]);
  expect(asked).toHaveLength(1);
  const [row] = await service.database.$queryRaw<{ later: boolean }[]>`
    SELECT resize_due_at > clock_timestamp() AS later FROM worker_pool WHERE tenant_id = ${tenantId}`;
  expect(row?.later).toBe(true);
  refusal = undefined;
  await service.database
    .$executeRaw`UPDATE worker_pool SET resize_due_at = clock_timestamp() WHERE tenant_id = ${tenantId}`;
  expect(await askNow()).toEqual([poolId]);
});
