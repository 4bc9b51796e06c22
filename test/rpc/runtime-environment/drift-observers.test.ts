import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ConnectError, Code } from "@connectrpc/connect";
import { ProvisioningAppliedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/provisioning_pb";
import { DriftKind, FindingState, Health } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { ProvisioningKind, SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { applied } from "../../_support/provisioning-server.ts";
import {
  type EnvironmentClient,
  type EnvironmentService,
  eventAbout,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

let service: EnvironmentService;
let tenantId: string;
let tenant: EnvironmentClient;
let environmentId: string;
let specificationId: string;

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = await service.created(tenantId);
  specificationId = uuidv7();
});

/** The engine looks, and finds a release with these components applied. */
const inspected = (components: { name: string; version: string; replicas: number }[], version = 1) => {
  const kind = SpecificationKind.RELEASE;
  service.provisioning.applied.set(environmentId, [applied({ specificationId, kind, version, components })]);
  return tenant.observeEnvironment({ environmentId });
};
const web = { name: "web", version: "1.4.0", replicas: 3 };
let clock = 0;
/** An agent reports one component, each time a moment later than before. */
const pushed = (changes: object = {}, observedAt = new Date(Date.now() - 10_000 + (clock += 1))) =>
  tenant.observeEnvironment({
    environmentId,
    observation: {
      observedAt: timestampFromDate(observedAt),
      components: [
        { name: "web", version: "1.4.0", replicasDesired: 3, replicasReady: 3, health: Health.HEALTHY, ...changes },
      ],
    },
  });
const findings = async () => (await tenant.listFindings({ environmentId })).findings;
const open = async () =>
  (await findings()).filter(({ state }) => state === FindingState.OPEN).map(({ kind }) => DriftKind[kind]);
const detected = async () =>
  (await service.announced(tenantId)).filter(({ event }) => event === "RuntimeDriftDetected");

test("what runs otherwise than it was applied is a finding of the release, by whoever saw it", async () => {
  await inspected([web]);
  await pushed({ version: "1.3.9", replicasDesired: 1, replicasReady: 1, health: Health.DEGRADED });
  expect((await open()).sort()).toEqual(["HEALTH_DEGRADED", "REPLICA_MISMATCH", "VERSION_MISMATCH"]);
  const version = (await findings()).find(({ kind }) => kind === DriftKind.VERSION_MISMATCH);
  expect(version).toMatchObject({ resource: "component/web", attribute: "version", observer: "push" });
  await pushed();
  expect(await open()).toEqual([]);
});

test("components that run as they were applied raise nothing, whoever looks and however often", async () => {
  await inspected([web]);
  await pushed();
  await inspected([web]);
  await pushed({ health: Health.PROGRESSING });
  expect(await findings()).toEqual([]);
  expect(await detected()).toEqual([]);
});

test("a new release is no drift: not before its agent has seen it, nor from what was seen before it", async () => {
  await inspected([web]);
  await pushed();
  const event = eventAbout(
    ProvisioningAppliedSchema,
    {
      ...{ provisioningRunId: uuidv7(), kind: ProvisioningKind.PROMOTION, tenantId, projectId: uuidv7() },
      ...{ environmentId, specificationVersion: 2, outputs: {} },
    },
    { id: environmentId, tenantId },
  );
  await service.deliver(event);
  await service.deliver(event);
  await pushed({ version: "1.5.0" });
  specificationId = uuidv7();
  await inspected([{ ...web, version: "1.5.0" }], 2);
  await pushed({ version: "1.5.0" }, new Date());
  expect(await findings()).toEqual([]);
});

test("drift that a new release makes its own is over with the engine's look", async () => {
  await inspected([web]);
  await pushed({ version: "1.5.0" });
  expect(await open()).toEqual(["VERSION_MISMATCH"]);
  await inspected([{ ...web, version: "1.5.0" }]);
  expect(await findings()).toMatchObject([{ state: FindingState.RESOLVED }]);
});

test("an engine that can't look says nothing: what agents saw stays", async () => {
  await inspected([web]);
  await pushed({ version: "1.3.9" });
  service.provisioning.applied.set(environmentId, new ConnectError("busy", Code.Unavailable));
  await tenant.observeEnvironment({ environmentId });
  expect(await open()).toEqual(["VERSION_MISMATCH"]);
});

test("a report that is older than the last one, or comes twice, changes no finding", async () => {
  await inspected([web]);
  const earlier = new Date(Date.now() - 60_000);
  await pushed({ version: "1.3.9" });
  const before = await service.database.finding.findMany({ where: { environmentId } });
  await pushed({}, earlier);
  await pushed({ version: "1.0.0" }, earlier);
  expect(await service.database.finding.findMany({ where: { environmentId } })).toEqual(before);
  expect(await detected()).toHaveLength(1);
});
