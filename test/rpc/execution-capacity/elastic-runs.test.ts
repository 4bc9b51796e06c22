import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { create, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, createRouterTransport, type HandlerContext } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { ProvisioningRunSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import { SpecificationSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/specifications_pb";
import {
  LeaseState,
  PoolKind,
  PoolScaling,
  PoolState,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { deadlineCause } from "@runtime-cloud/eventing/cause";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { takeSizes } from "@runtime-cloud/execution-capacity/pools/pool-provisioned";
import { poolResize } from "@runtime-cloud/execution-capacity/pools/pool-resize";
import { EVENT_GRACE_MS } from "@runtime-cloud/execution-capacity/pools/resize-run";
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
let poolId: string;

/** The other side's run, and how often it was asked for. */
let run: MessageInitShape<typeof ProvisioningRunSchema>;
let refusal: ConnectError | undefined;
let looks: string[];

const otherSide = createRouterTransport(({ service: serve }) => {
  serve(IaCProvisioningService, {
    declareSpecification: () => ({ specification: create(SpecificationSchema, { specificationId: uuidv7() }) }),
    planProvisioning: () => ({ run }),
    getProvisioningRun({ provisioningRunId }, { requestHeader }: HandlerContext) {
      if (requestHeader.get("runtime-cloud-tenant") === tenantId) looks.push(provisioningRunId);
      if (refusal) throw refusal;
      return { run };
    },
  });
});

beforeAll(async () => {
  service = await startCapacity({ provisioning: createClient(IaCProvisioningService, otherSide) });
});
afterAll(() => service.close());
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  poolId = `burst-${uuidv7()}`;
  tenant = service.as(tenantId);
  looks = [];
  refusal = undefined;
  run = { provisioningRunId: uuidv7(), state: RunState.QUEUED };
  await wish(4);
  await turn();
});

const wish = (size: number) =>
  tenant.setWorkerPool({
    ...{ poolId, size, kind: PoolKind.RUN_WORKERS, scaling: PoolScaling.ELASTIC },
    ...{ environmentId: "env-1", programVersion: "worker-pool@1.0.0" },
  });
const turn = () => runOut(poolResize(service.context));
const poolNow = async () => (await tenant.getWorkerPool({ poolId })).pool;
const row = () => service.database.workerPool.findUniqueOrThrow({ where: { tenantId_id: { tenantId, id: poolId } } });

/** The pool's next look at the run, whenever it was due. */
async function look(): Promise<void> {
  await service.database.$executeRaw`
    UPDATE worker_pool SET resize_due_at = clock_timestamp() WHERE tenant_id = ${tenantId} AND resize_due_at IS NOT NULL`;
  await turn();
}

/** What ProvisioningApplied does. */
function provisioned(size: number, generation = 1): Promise<void> {
  const cause = deadlineCause("test", uuidv7);
  return unitOfWork(service.context, cause, (unit) =>
    takeSizes(service.context, unit, tenantId, [{ poolId, size, generation }]),
  );
}

function applied(outputs: JsonValue, agoMs = EVENT_GRACE_MS) {
  const endedAt = timestampFromMs(Date.now() - agoMs);
  run = { ...run, state: RunState.APPLIED, endedAt, outputs: { pools: outputs } };
}

test("keeps the run that is planned for a size, and looks at it while it goes on", async () => {
  expect(await row()).toMatchObject({ resizeRunId: run.provisioningRunId });
  for (const state of [RunState.PLANNING, RunState.AWAITING_APPROVAL, RunState.APPLYING, RunState.INDETERMINATE]) {
    run = { ...run, state };
    await look();
    expect((await row()).resizeDueAt).not.toBeNull();
  }
  expect(looks).toEqual(Array<unknown>(4).fill(run.provisioningRunId));
  expect(await poolNow()).toMatchObject({ state: PoolState.PROVISIONING, desiredSize: 4 });
});

test("looks ever less often, up to once a minute", async () => {
  const pauseAfter = async (wantedFor: string) => {
    await service.database.$executeRaw`
      UPDATE transition SET at = clock_timestamp() - ${wantedFor}::interval
      WHERE tenant_id = ${tenantId} AND event = 'requestSize'`;
    await look();
    const [left] = await service.database.$queryRaw<{ seconds: number }[]>`
      SELECT extract(epoch FROM resize_due_at - clock_timestamp())::float8 AS seconds FROM worker_pool
      WHERE tenant_id = ${tenantId}`;
    return Math.round(left?.seconds ?? 0);
  };
  expect(await pauseAfter("1 second")).toBe(5);
  expect(await pauseAfter("20 seconds")).toBe(20);
  expect(await pauseAfter("1 hour")).toBe(60);
});

test.each([
  RunState.PARTIALLY_APPLIED,
  RunState.FAILED,
  RunState.REJECTED,
  RunState.EXPIRED,
  RunState.SUPERSEDED,
  RunState.CANCELLED,
  RunState.RESOLVED,
])("a run that ends without its size (%p) leaves the old size and says why", async (state) => {
  await provisioned(4);
  await wish(9);
  await turn();
  const { lease } = await tenant.acquireLease(attempt(poolId, { units: 4 }));
  run = { ...run, state, reason: "apply: quota of the region is reached" };
  await look();
  expect(await poolNow()).toMatchObject({
    ...{ state: PoolState.ACTIVE, currentSize: 4, desiredSize: 9, used: 4 },
    note: `run ${run.provisioningRunId} is ${RunState[state]}: apply: quota of the region is reached`,
  });
  expect(await row()).toMatchObject({ resizeDueAt: null, resizeRunId: null });
  expect((await tenant.getLease({ leaseId: lease?.leaseId ?? "" })).lease?.state).toBe(LeaseState.ACTIVE);
});

test("a failed size is asked for again when it is set again, in a run of its own", async () => {
  run = { ...run, state: RunState.FAILED };
  await look();
  run = { provisioningRunId: uuidv7(), state: RunState.QUEUED };
  expect((await wish(4)).pool).toMatchObject({ generation: 2 });
  await turn();
  expect(await row()).toMatchObject({ resizeRunId: run.provisioningRunId, note: null });
});

test("the event that brings the size ends the looking", async () => {
  await provisioned(4);
  expect(await row()).toMatchObject({ resizeDueAt: null, resizeRunId: null, currentSize: 4 });
  await turn();
  expect(looks).toEqual([]);
});

test("the event of a run whose failure was noted still brings its size", async () => {
  run = { ...run, state: RunState.RESOLVED };
  await look();
  await provisioned(4);
  const pool = await poolNow();
  expect(pool).toMatchObject({ state: PoolState.ACTIVE, currentSize: 4 });
  expect(pool).not.toHaveProperty("note");
});

test("leaves an applied size to its event, and takes it from the run when that doesn't come", async () => {
  const { lease } = await tenant.acquireLease(attempt(poolId, patiently));
  applied([{ poolId, size: 4, generation: 1 }], 0);
  await look();
  expect(await poolNow()).toMatchObject({ state: PoolState.PROVISIONING, currentSize: 0 });
  applied([{ poolId, size: 4, generation: 1 }]);
  await look();
  expect(await poolNow()).toMatchObject({ state: PoolState.ACTIVE, currentSize: 4, used: 1 });
  expect((await tenant.getLease({ leaseId: lease?.leaseId ?? "" })).lease?.state).toBe(LeaseState.ACTIVE);
  expect(await row()).toMatchObject({ resizeDueAt: null, resizeRunId: null });
});

test.each([
  ["tells nothing of the pool", [], "tells no size of generation 1"],
  ["tells no sizes at all", "four", "need pools of {poolId, size, generation}"],
])("an applied run that %s is a failure", async (_what, outputs, reason) => {
  applied(outputs);
  await look();
  expect(await poolNow()).toMatchObject({ state: PoolState.PROVISIONING, note: expect.stringContaining(reason) });
  expect((await row()).resizeDueAt).toBeNull();
});

test("another size that is wanted meanwhile has its own run; the old one's end is no news", async () => {
  const old = run;
  run = { provisioningRunId: uuidv7(), state: RunState.PLANNING };
  await wish(7);
  await turn();
  expect(await row()).toMatchObject({ resizeRunId: run.provisioningRunId, generation: 2 });
  expect(looks).not.toContain(old.provisioningRunId);
});

test("a run that nobody knows is a failure; one that can't be asked for is asked for again", async () => {
  refusal = new ConnectError("connection refused", Code.Unavailable);
  await look();
  expect((await row()).resizeDueAt?.getTime()).toBeGreaterThan((await transactionNow(service.database)).getTime());
  expect(await poolNow()).not.toHaveProperty("note");
  refusal = new ConnectError("no such run", Code.NotFound);
  await look();
  expect(await poolNow()).toMatchObject({ note: expect.stringContaining("is unknown") });
});
