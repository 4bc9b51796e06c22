import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { ProvisioningAppliedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/provisioning_pb";
import { DriftKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { ProvisioningKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
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

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  service.provisioning.whileInspecting = () => Promise.resolve();
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = await service.created(tenantId);
  there(1);
  await look();
});

/** What is applied, and what drifts from it. */
const there = (version: number, attribute?: string) => {
  const drift = attribute ? [{ address: "terraform_data.app", kind: DriftKind.ATTRIBUTE_CHANGED, attribute }] : [];
  service.provisioning.applied.set(environmentId, [applied({ version, drift })]);
};
const look = async () => (await tenant.observeEnvironment({ environmentId })).environment;
const appliedVersion = async () =>
  (await tenant.getEnvironment({ environmentId })).environment?.versions.map((versions) => versions.applied);
const findings = async () => (await tenant.listFindings({ environmentId })).findings;
const hears = (specificationVersion: number) =>
  service.deliver(
    eventAbout(
      ProvisioningAppliedSchema,
      {
        ...{ tenantId, environmentId, specificationVersion, projectId: uuidv7(), outputs: {} },
        ...{ provisioningRunId: uuidv7(), kind: ProvisioningKind.BASELINE },
      },
      { id: environmentId, tenantId },
    ),
  );

test("a look that began before an apply and ends after it takes back neither the version nor raises drift", async () => {
  there(1, "input");
  service.provisioning.whileInspecting = () => hears(2);
  await look();
  expect(await appliedVersion()).toEqual([2]);
  expect(await findings()).toEqual([]);
  expect(await service.registry.metrics()).toContain('observations_ignored_total{observer="engine"} 1');
  // The apply has asked for another look, which is due.
  expect(await service.runOut("observation")).toContain(environmentId);

  service.provisioning.whileInspecting = () => Promise.resolve();
  there(2, "input");
  await look();
  expect(await appliedVersion()).toEqual([2]);
  expect(await findings()).toHaveLength(1);
});

test("a look that began before an apply and saw it is taken in, whether the event comes before or after it", async () => {
  there(2);
  service.provisioning.whileInspecting = () => hears(2);
  await look();
  expect(await appliedVersion()).toEqual([2]);

  service.provisioning.whileInspecting = () => Promise.resolve();
  there(3, "input");
  await look();
  await hears(3);
  expect(await appliedVersion()).toEqual([3]);
  expect(await findings()).toHaveLength(1);
});

test("a look that ends before the apply is told of is about the version before, until the event comes", async () => {
  await look();
  expect(await appliedVersion()).toEqual([1]);
  await hears(2);
  expect(await appliedVersion()).toEqual([2]);
});
