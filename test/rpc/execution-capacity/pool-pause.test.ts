import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import { LeaseState, PoolState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { poolResume } from "@runtime-cloud/execution-capacity/pools/pool-resume";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  attempt,
  type CapacityClient,
  type CapacityService,
  patiently,
  runOut,
  startCapacity,
  staticPool,
} from "../../_support/execution-capacity.ts";

let service: CapacityService;
let tenantId: string;
let tenant: CapacityClient;
let poolId: string;

beforeAll(async () => {
  service = await startCapacity();
});
afterAll(() => service.close());
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  poolId = `pool-${uuidv7()}`;
  await tenant.setWorkerPool(staticPool(poolId, 1));
});

const anHour = { seconds: 3_600n };
const pause = (resumeAfter = anHour) => tenant.cordonPool({ poolId, note: "new image", resumeAfter });
const poolNow = async () => (await tenant.getWorkerPool({ poolId })).pool;
const wakeUp = () => runOut(poolResume(service.context));
const pauseIsOver = () => service.database.$executeRaw`
  UPDATE worker_pool SET resume_at = clock_timestamp() WHERE tenant_id = ${tenantId}`;

test("a pool that was cordoned for a while goes on by itself, and those who waited have their turn", async () => {
  const { pool } = await pause();
  expect(pool).toMatchObject({ state: PoolState.CORDONED, note: "new image" });
  const [row] = await service.database.$queryRaw<{ seconds: number }[]>`
    SELECT extract(epoch FROM resume_at - clock_timestamp())::float8 AS seconds FROM worker_pool
    WHERE tenant_id = ${tenantId}`;
  expect(row?.seconds).toBeGreaterThan(3_540);
  expect(row?.seconds).toBeLessThanOrEqual(3_600);
  expect(service.armed.at(-1)).toMatchObject({ kind: "pool-resume", label: { pool: poolId } });

  const { lease } = await tenant.acquireLease(attempt(poolId, patiently));
  expect(lease?.state).toBe(LeaseState.WAITING);
  await pauseIsOver();
  expect(await wakeUp()).toEqual([poolId]);
  const resumed = await poolNow();
  expect(resumed).toMatchObject({ state: PoolState.ACTIVE, used: 1 });
  expect(resumed).not.toHaveProperty("note");
  expect(resumed).not.toHaveProperty("resumeAt");
  expect((await tenant.getLease({ leaseId: lease?.leaseId ?? "" })).lease?.state).toBe(LeaseState.ACTIVE);
});

test("a wake-up that comes early, or twice, changes nothing", async () => {
  await pause();
  expect(await wakeUp()).toEqual([]);
  expect((await poolNow())?.state).toBe(PoolState.CORDONED);
  await pauseIsOver();
  expect(await wakeUp()).toEqual([poolId]);
  expect(await wakeUp()).toEqual([]);
});

test("an operator who uncordons or drains the pool ends its pause", async () => {
  await pause();
  await tenant.uncordonPool({ poolId });
  await tenant.cordonPool({ poolId });
  expect(await poolNow()).not.toHaveProperty("resumeAt");
  await tenant.uncordonPool({ poolId });
  await tenant.acquireLease(attempt(poolId));
  await pause();
  await tenant.drainPool({ poolId, within: anHour });
  const draining = await poolNow();
  expect(draining).toMatchObject({ state: PoolState.DRAINING });
  expect(draining).not.toHaveProperty("resumeAt");
});

test("whoever asked for the pause goes on in its end", async () => {
  await pause();
  await pauseIsOver();
  await wakeUp();
  const [cordon, uncordon] = await service.database.transition.findMany({
    where: { tenantId, event: { in: ["cordon", "uncordon"] } },
    orderBy: { version: "asc" },
  });
  expect(uncordon).toMatchObject({ actor: "deadline:pool-resume", correlationId: cordon?.correlationId });
});

test.each([{ seconds: 0n }, { seconds: -1n }, { seconds: 604_801n }])(
  "refuses a pause of no time, or of more than a week: %p",
  async (resumeAfter) => {
    await expect(pause(resumeAfter)).rejects.toMatchObject({ code: Code.InvalidArgument });
  },
);
