import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import { RenewLeaseResponse_Result as Renewal } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { LeaseState, ReleaseReason } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { BATCH, BATCH_BESIDE_OTHERS, leaseExpiry } from "@runtime-cloud/execution-capacity/desk/overdue-leases";
import { until } from "@runtime-cloud/local-servers/until";
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

beforeAll(async () => {
  service = await startCapacity();
});
afterAll(() => service.close());
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  await tenant.setWorkerPool(staticPool("build", 1));
});
afterEach(async () => {
  expect(await service.differences()).toEqual([]);
});

const short = { ttl: { seconds: 1n } };
const minute = { seconds: 60n };

async function held(changes: Parameters<typeof attempt>[1] = {}) {
  const { lease } = await tenant.acquireLease(attempt("build", changes));
  return { leaseId: lease?.leaseId ?? "", fencingToken: lease?.fencingToken ?? 0n };
}
const leaseOf = async (leaseId: string) => (await tenant.getLease({ leaseId })).lease;
const released = async () =>
  (await service.announced(tenantId)).filter(({ event }) => event === "CapacityLeaseReleased");

/** Waits for the database's clock, and for nobody to have ended the lease meanwhile. */
async function pastExpiry(leaseId: string): Promise<void> {
  await until("the lease's time to be over", 5_000, async () => {
    const [row] = await service.database.$queryRaw<{ over: boolean }[]>`
      SELECT expires_at <= clock_timestamp() AS over FROM capacity_lease WHERE id = ${leaseId}::uuid`;
    return row?.over || undefined;
  });
  expect((await leaseOf(leaseId))?.state).toBe(LeaseState.ACTIVE);
}

test("ends a lease that isn't renewed, and charges its seconds once", async () => {
  const { leaseId } = await held(short);
  await pastExpiry(leaseId);
  expect(await runOut(leaseExpiry(service.context, service.desk))).toContain(leaseId);
  expect(await runOut(leaseExpiry(service.context, service.desk))).toEqual([]);
  const lease = await leaseOf(leaseId);
  expect(lease).toMatchObject({ state: LeaseState.EXPIRED, releaseReason: ReleaseReason.TTL, executionSeconds: 1n });
  expect((await released()).map(({ data }) => data)).toEqual([
    expect.objectContaining({ leaseId, state: "LEASE_STATE_EXPIRED", executionSeconds: "1" }),
  ]);
});

test("a lease that a drain cut short ends when it says, though the drain is taken back", async () => {
  const lease = await held({ ttl: { seconds: 600n } });
  await tenant.drainPool({ poolId: "build", within: { seconds: 1n } });
  await tenant.renewLease({ ...lease, ttl: minute });
  await tenant.uncordonPool({ poolId: "build" });
  await pastExpiry(lease.leaseId);
  expect(await runOut(leaseExpiry(service.context, service.desk))).toEqual([lease.leaseId]);
});

test("grants to the waiter in the transaction that ends an overdue lease", async () => {
  const { leaseId } = await held();
  const waiter = await held(patiently);
  await service.database.$executeRaw`
    UPDATE capacity_lease SET expires_at = clock_timestamp(), due_at = clock_timestamp() WHERE id = ${leaseId}::uuid`;
  expect(await runOut(leaseExpiry(service.context, service.desk))).toEqual([leaseId]);
  expect((await leaseOf(waiter.leaseId))?.state).toBe(LeaseState.ACTIVE);
  const written = await service.database.$queryRaw<{ transactions: bigint }[]>`
    SELECT count(DISTINCT xmin::text) AS transactions FROM transition
    WHERE (aggregate_id = ${leaseId} AND event = 'expire') OR (aggregate_id = ${waiter.leaseId} AND event = 'grant')`;
  expect(written).toEqual([{ transactions: 1n }]);
});

test("ends an overdue lease in the acquire that needs its slot, before any sweep", async () => {
  const { leaseId, fencingToken } = await held(short);
  await pastExpiry(leaseId);
  const next = await held();
  expect(next.fencingToken).toBeGreaterThan(fencingToken);
  expect((await leaseOf(leaseId))?.state).toBe(LeaseState.EXPIRED);
});

test("gives a holder whose lease is overdue another lease with another token", async () => {
  const holderId = uuidv7();
  const { leaseId } = await held({ ...short, holderId });
  await pastExpiry(leaseId);
  const next = await held({ holderId });
  expect(next.leaseId).not.toBe(leaseId);
  expect((await leaseOf(leaseId))?.state).toBe(LeaseState.EXPIRED);
});

test("renews a live lease, and never makes it end earlier than it would", async () => {
  const { leaseId, fencingToken } = await held();
  const before = (await leaseOf(leaseId))?.expiresAt;
  const longer = await tenant.renewLease({ leaseId, fencingToken, ttl: { seconds: 120n } });
  const shorter = await tenant.renewLease({ leaseId, fencingToken, ttl: { seconds: 1n } });
  expect([longer.result, shorter.result]).toEqual([Renewal.RENEWED, Renewal.RENEWED]);
  expect(longer.lease?.expiresAt?.seconds).toBeGreaterThan(before?.seconds ?? 0n);
  expect(longer.ttl).toMatchObject({ seconds: 120n });
  expect(shorter.lease?.expiresAt).toEqual(longer.lease?.expiresAt);
});

test("never revives a lease that is overdue or has ended", async () => {
  const { leaseId, fencingToken } = await held(short);
  await pastExpiry(leaseId);
  const renew = () => tenant.renewLease({ leaseId, fencingToken, ttl: minute });
  const overdue = await renew();
  expect(overdue).toMatchObject({ result: Renewal.ALREADY_ENDED });
  expect(overdue.ttl).toBeUndefined();
  await runOut(leaseExpiry(service.context, service.desk));
  expect(await renew()).toMatchObject({ result: Renewal.ALREADY_ENDED, lease: { state: LeaseState.EXPIRED } });
});

test("tells a holder with an old token that it is stale, and changes nothing", async () => {
  const { leaseId, fencingToken } = await held();
  const before = await leaseOf(leaseId);
  const answer = await tenant.renewLease({ leaseId, fencingToken: fencingToken + 1n, ttl: { seconds: 600n } });
  expect(answer.result).toBe(Renewal.STALE_TOKEN);
  expect(await leaseOf(leaseId)).toEqual(before);
});

test("releases once, and answers a repeat as the lease ended", async () => {
  const { leaseId } = await held();
  const [first, second] = await Promise.all([tenant.releaseLease({ leaseId }), tenant.releaseLease({ leaseId })]);
  const third = await tenant.releaseLease({ leaseId });
  expect(first.lease).toEqual(third.lease);
  expect(second.lease).toEqual(third.lease);
  expect(third.lease).toMatchObject({ state: LeaseState.RELEASED, releaseReason: ReleaseReason.HOLDER });
  expect(await released()).toHaveLength(1);
});

test("ends an overdue lease as expired when its holder releases it late, charging no second beyond its time", async () => {
  const { leaseId } = await held(short);
  await pastExpiry(leaseId);
  const { lease } = await tenant.releaseLease({ leaseId });
  expect(lease).toMatchObject({ state: LeaseState.EXPIRED, releaseReason: ReleaseReason.TTL, executionSeconds: 1n });
  expect((await tenant.releaseLease({ leaseId })).lease).toEqual(lease);
});

test("revokes a lease against its holder, once", async () => {
  const { leaseId } = await held();
  const { lease } = await tenant.revokeLease({ leaseId, idempotencyKey: "revoke-1" });
  expect(lease).toMatchObject({ state: LeaseState.REVOKED, releaseReason: ReleaseReason.OPERATOR });
  expect((await tenant.revokeLease({ leaseId, idempotencyKey: "revoke-1" })).lease).toEqual(lease);
  await expect(tenant.revokeLease({ leaseId })).rejects.toMatchObject({ code: Code.FailedPrecondition });
  expect(await released()).toHaveLength(1);
});

test.each([
  { asked: false, most: BATCH },
  { asked: true, most: BATCH_BESIDE_OTHERS },
])(
  "ends overdue leases, each once, and says which; while somebody asks ($asked) at most $most in a transaction",
  async ({ asked, most }) => {
    const count = most + 5;
    await tenant.setWorkerPool(staticPool("build", count));
    const leaseIds = (await Promise.all(Array.from({ length: count }, () => held()))).map(({ leaseId }) => leaseId);
    await service.database.$executeRaw`
    UPDATE capacity_lease SET expires_at = clock_timestamp(), due_at = clock_timestamp() WHERE tenant_id = ${tenantId}`;

    const desk = { ...service.desk, isAsked: () => asked };
    const ended = await runOut(leaseExpiry(service.context, desk));
    expect([...ended].sort()).toEqual(leaseIds.sort());
    const transactions = await service.database.$queryRaw<{ ended: number }[]>`
    SELECT count(*)::int AS ended FROM transition
    WHERE tenant_id = ${tenantId} AND event = 'expire' GROUP BY xmin::text ORDER BY 1 DESC`;
    expect(transactions).toEqual([{ ended: most }, { ended: 5 }]);
    expect(await runOut(leaseExpiry(service.context, service.desk))).toEqual([]);
    expect(await released()).toHaveLength(count);
  },
);
