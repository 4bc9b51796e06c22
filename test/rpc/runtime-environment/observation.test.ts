import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { Health, InventoryState, SyncStatus } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { observeNow } from "@runtime-cloud/runtime-environment/observing/observations";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { applied } from "../../_support/provisioning-server.ts";
import {
  type EnvironmentClient,
  type EnvironmentService,
  refusalOf,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

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

const component = { name: "api", version: "1.4.0", replicasDesired: 3, replicasReady: 3 };
const push = (at: Date, changes: Partial<typeof component> = {}) =>
  tenant.observeEnvironment({
    environmentId,
    observation: { observedAt: timestampFromDate(at), components: [{ ...component, ...changes }] },
  });
const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1_000);
const observed = async () =>
  (await service.announced(tenantId)).filter(({ event }) => event === "ObservedStateChanged");

test("what is as it was applied is FRESH, healthy and in sync, and announced with all that is new", async () => {
  const releaseId = uuidv7();
  const components = [{ name: "api", version: "1.4.0", replicas: 2 }];
  const release = applied({ kind: SpecificationKind.RELEASE, version: 4, releaseId, components });
  service.provisioning.applied.set(environmentId, [applied(), release]);

  const { environment, changed } = await tenant.observeEnvironment({ environmentId });

  expect(changed).toBe(true);
  expect(environment).toMatchObject({
    state: InventoryState.FRESH,
    health: Health.HEALTHY,
    sync: SyncStatus.IN_SYNC,
    currentReleaseId: releaseId,
    components: [{ name: "api", version: "1.4.0", replicasDesired: 2, replicasReady: 2, health: Health.HEALTHY }],
  });
  expect(environment?.versions).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ kind: "BASELINE", declared: 1, applied: 1 }),
      expect.objectContaining({ kind: "RELEASE", declared: 4, applied: 4 }),
    ]),
  );
  const [announced, ...others] = await observed();
  expect(others).toEqual([]);
  expect(announced?.data).toMatchObject({ environmentId, currentReleaseId: releaseId, stale: false });
  expect(announced?.data).toMatchObject({
    changes: {
      changes: expect.arrayContaining([
        { path: "/health", from: "UNKNOWN", to: "HEALTHY" },
        { path: "/versions/RELEASE/applied", from: null, to: 4 },
        { path: "/components/api/replicasReady", from: null, to: 2 },
        {
          path: "/resources/BASELINE/terraform_data.app",
          from: null,
          to: { resourceType: "terraform_data", resourceId: "app-1" },
        },
      ]),
    },
  });
});

test("an observation that sees the same moves only the time", async () => {
  service.provisioning.applied.set(environmentId, [applied()]);
  const first = await tenant.observeEnvironment({ environmentId });
  const second = await tenant.observeEnvironment({ environmentId });
  expect(second.changed).toBe(false);
  const [before, after] = [first, second].map(({ environment }) => Number(environment?.observedAt?.nanos));
  expect(after).not.toBe(before);
  expect(await observed()).toHaveLength(1);
  expect(await service.database.transition.count({ where: { aggregateId: environmentId, event: "observe" } })).toBe(1);
});

test("the engine is asked for the tenant, as part of what the caller set off", async () => {
  service.provisioning.applied.set(environmentId, [applied()]);
  const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  await tenant.observeEnvironment({ environmentId }, { headers: { "x-correlation-id": "release-7", traceparent } });
  expect(service.provisioning.headers.get(tenantId)).toEqual({ correlationId: "release-7", traceparent });
});

test("an observer that fails says so and leaves the world, its findings and its freshness as they were known", async () => {
  const drift = [{ address: "terraform_data.app", kind: 3, attribute: "input" }];
  service.provisioning.applied.set(environmentId, [applied({ drift })]);
  const known = await tenant.observeEnvironment({ environmentId });

  service.provisioning.applied.set(environmentId, new ConnectError("the engine is busy", Code.ResourceExhausted));
  const { environment } = await tenant.observeEnvironment({ environmentId });

  expect(environment).toMatchObject({ state: InventoryState.FRESH, health: Health.UNKNOWN, sync: SyncStatus.DRIFTED });
  expect(environment?.observationFailure).toBe("engine: IaCProvisioningService: the engine is busy");
  expect(environment?.resources).toEqual(known.environment?.resources);
  expect(environment?.observedAt).toEqual(known.environment?.observedAt);
  expect((await tenant.listFindings({ environmentId })).findings).toMatchObject([{ state: 1, occurrences: 1 }]);

  service.provisioning.applied.set(environmentId, [applied()]);
  const again = await tenant.observeEnvironment({ environmentId });
  expect(again.environment).toMatchObject({ health: Health.HEALTHY, sync: SyncStatus.IN_SYNC });
  expect(again.environment?.observationFailure).toBeUndefined();
});

test("an environment that was never seen stays UNOBSERVED when looking fails", async () => {
  const { environment, changed } = await tenant.observeEnvironment({ environmentId });
  expect(changed).toBe(false);
  expect(environment).toMatchObject({ state: InventoryState.UNOBSERVED, sync: SyncStatus.UNKNOWN });
  expect(environment?.observationFailure).toContain("does not exist");
});

test("a specification that can't be inspected keeps its resources and findings while the others move on", async () => {
  const drift = [{ address: "terraform_data.app", kind: 3, attribute: "input" }];
  const release = applied({ kind: SpecificationKind.RELEASE, drift });
  service.provisioning.applied.set(environmentId, [applied({ drift }), release]);
  await tenant.observeEnvironment({ environmentId });

  const failing = applied({ ...release, resources: [], drift: [], failure: "the state is locked" });
  service.provisioning.applied.set(environmentId, [applied(), failing]);
  const { environment } = await tenant.observeEnvironment({ environmentId });

  expect(environment).toMatchObject({ state: InventoryState.FRESH, health: Health.UNKNOWN, sync: SyncStatus.DRIFTED });
  expect(environment?.observationFailure).toBe("engine: RELEASE: the state is locked");
  expect(environment?.resources).toHaveLength(2);
  const { findings } = await tenant.listFindings({ environmentId });
  expect(findings.map(({ state }) => state).sort()).toEqual([1, 4]);
});

test("an agent's observation says how components do, and the engine doesn't contradict it", async () => {
  const components = [{ name: "api", version: "1.4.0", replicas: 3 }];
  service.provisioning.applied.set(environmentId, [applied({ components })]);
  await tenant.observeEnvironment({ environmentId });
  const degraded = await push(secondsAgo(1), { replicasReady: 1 });
  expect(degraded.environment).toMatchObject({ health: Health.DEGRADED, components: [{ replicasReady: 1 }] });

  const looked = await tenant.observeEnvironment({ environmentId });
  expect(looked.environment).toMatchObject({ health: Health.DEGRADED, components: [{ replicasReady: 1 }] });
});

test("an agent's older observation is ignored", async () => {
  await push(secondsAgo(10), { replicasReady: 3 });
  const { changed, environment } = await push(secondsAgo(20), { replicasReady: 0 });
  expect(changed).toBe(false);
  expect(environment?.components).toMatchObject([{ replicasReady: 3 }]);
});

test("an agent's observation from the future, or with a component twice, is refused by field", async () => {
  const observation = { observedAt: timestampFromDate(secondsAgo(-3_600)), components: [component, component] };
  const { code, rawMessage } = await refusalOf(tenant.observeEnvironment({ environmentId, observation }));
  expect(code).toBe(Code.InvalidArgument);
  expect(rawMessage).toContain("observation.observedAt: is more than 60 s ahead");
  expect(rawMessage).toContain('observation.components[1].name: names "api" a second time');
});

test("the same key returns the first observation again", async () => {
  service.provisioning.applied.set(environmentId, [applied()]);
  const request = { environmentId, idempotencyKey: "look-1" };
  const first = await tenant.observeEnvironment(request);
  expect(await tenant.observeEnvironment(request)).toEqual(first);
});

test("two observers at once come one after the other and announce what moved once", async () => {
  const drift = [{ address: "terraform_data.app", kind: 3, attribute: "input" }];
  service.provisioning.applied.set(environmentId, [applied({ drift })]);
  await Promise.all(Array.from({ length: 6 }, () => tenant.observeEnvironment({ environmentId })));
  expect(await observed()).toHaveLength(1);
  const { findings } = await tenant.listFindings({ environmentId });
  expect(findings).toHaveLength(1);
});

test("what isn't seen for too long is STALE, announced once, and FRESH again when it is seen", async () => {
  service.provisioning.applied.set(environmentId, [applied()]);
  await tenant.observeEnvironment({ environmentId });
  expect(await service.runOut("staleness")).not.toContain(environmentId);
  await service.database.inventory.update({ where: { id: environmentId }, data: { staleAt: secondsAgo(1) } });

  expect(await service.runOut("staleness")).toContain(environmentId);
  expect(await service.runOut("staleness")).not.toContain(environmentId);
  expect((await tenant.getEnvironment({ environmentId })).environment?.state).toBe(InventoryState.STALE);
  expect((await observed()).map(({ data }) => data["stale"])).toEqual([false, true]);

  const { changed, environment } = await tenant.observeEnvironment({ environmentId });
  expect(changed).toBe(true);
  expect(environment?.state).toBe(InventoryState.FRESH);
});

test("a look that is due is claimed once, enqueued, and comes again after the interval", async () => {
  service.provisioning.applied.set(environmentId, [applied()]);
  expect(await service.runOut("observation")).not.toContain(environmentId);
  await service.database.inventory.update({ where: { id: environmentId }, data: { observeAt: secondsAgo(1) } });

  const claims = await Promise.all([service.runOut("observation"), service.runOut("observation")]);
  expect(claims.flat().filter((id) => id === environmentId)).toHaveLength(1);
  expect(service.enqueued).toContain(environmentId);
  const { observeAt } = await service.database.inventory.findUniqueOrThrow({ where: { id: environmentId } });
  const pause = (observeAt.getTime() - Date.now()) / 1_000;
  expect(pause).toBeGreaterThan(52);
  expect(pause).toBeLessThan(67);

  expect(await observeNow(service.context, environmentId, new AbortController().signal)).toEqual({ changed: true });
  expect((await tenant.getEnvironment({ environmentId })).environment?.state).toBe(InventoryState.FRESH);
});

test("a look that is cut short records nothing", async () => {
  service.provisioning.applied.set(environmentId, [applied()]);
  const stopping = AbortSignal.abort(new Error("stopping"));
  await expect(observeNow(service.context, environmentId, stopping)).rejects.toThrow();
  const { environment } = await tenant.getEnvironment({ environmentId });
  expect(environment?.state).toBe(InventoryState.UNOBSERVED);
  expect(environment?.observationFailure).toBeUndefined();
});
