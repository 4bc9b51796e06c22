import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { DriftKind, SyncStatus } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { applied, type Applied } from "../../_support/provisioning-server.ts";
import {
  type EnvironmentClient,
  type EnvironmentService,
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

const specificationId = uuidv7();
const seen = async (drift: Applied["drift"]) => {
  service.provisioning.applied.set(environmentId, [applied({ specificationId, drift: drift ?? [] })]);
  return tenant.observeEnvironment({ environmentId });
};
const detected = async () =>
  (await service.announced(tenantId)).filter(({ event }) => event === "RuntimeDriftDetected");
const many = (length: number) =>
  Array.from({ length }, (_, index) => ({
    address: `terraform_data.app[${index}]`,
    kind: DriftKind.ATTRIBUTE_CHANGED,
    attribute: "input.version",
  }));
const countFindings = (where: { state?: "OPEN" | "RESOLVED" } = {}) =>
  service.database.finding.count({ where: { environmentId, ...where } });

test("a thousand resources that drift at once are opened by one look, and resolved by one, each told once", async () => {
  expect((await seen(many(1_000))).environment?.sync).toBe(SyncStatus.DRIFTED);
  expect(await countFindings({ state: "OPEN" })).toBe(1_000);
  expect(service.enqueued).not.toContain(environmentId);
  const told = (await detected()).map(({ data }) => data["resource"]);
  expect(told).toHaveLength(1_000);
  expect(new Set(told).size).toBe(1_000);
  const history = { tenantId, aggregate: "DriftFinding" };
  expect(await service.database.transition.count({ where: { ...history, fromState: "[*]" } })).toBe(1_000);

  await seen([]);
  expect(await countFindings({ state: "RESOLVED" })).toBe(1_000);
  expect(await service.database.transition.count({ where: { ...history, toState: "RESOLVED" } })).toBe(1_000);
  expect(await detected()).toHaveLength(1_000);
});

test("more drift than one look opens is opened by the next one, which is asked for at once", async () => {
  await seen(many(1_010));
  expect(await countFindings()).toBe(1_000);
  expect(service.enqueued).toContain(environmentId);
  await seen(many(1_010));
  expect(await countFindings()).toBe(1_010);
});

test("a look that sees nothing new of a thousand findings leaves their rows alone", async () => {
  await seen(many(1_000));
  const written = () => service.database.$queryRaw`
    SELECT count(DISTINCT xmin::text)::int AS writers FROM finding WHERE environment_id = ${environmentId}`;
  expect(await written()).toEqual([{ writers: 1 }]);
  const before = await service.database.transition.count({ where: { tenantId } });
  await seen(many(1_000));
  expect(await written()).toEqual([{ writers: 1 }]);
  expect(await service.database.transition.count({ where: { tenantId } })).toBe(before);
});
