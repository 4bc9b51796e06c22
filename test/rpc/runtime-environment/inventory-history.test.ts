import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { SpecificationDeclaredSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/provisioning_pb";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { observeNow } from "@runtime-cloud/runtime-environment/observing/observations";
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
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = await service.created(tenantId);
});

const times = { observeEvery: { seconds: 30n }, staleAfter: { seconds: 120n } };
const history = async () => {
  const changes = await service.database.inventoryChange.findMany({
    where: { inventoryId: environmentId },
    orderBy: { revision: "asc" },
  });
  const { revision } = await service.database.inventory.findUniqueOrThrow({ where: { id: environmentId } });
  expect(changes.map((change) => change.revision)).toEqual(changes.map((_, index) => BigInt(index + 1)));
  expect(revision).toBe(BigInt(changes.length));
  return changes.map(({ actor, facts }) => ({ actor, facts }));
};
const fact = (path: string, from: unknown, to: unknown) => ({ path, from, to });
const facts = (...some: object[]) => expect.arrayContaining(some);

test("every recorded change is the next revision, with who brought it about and what moved", async () => {
  service.provisioning.applied.set(environmentId, [applied()]);
  await tenant.observeEnvironment({ environmentId });
  await tenant.observeEnvironment({ environmentId });
  await service.database.inventory.update({ where: { id: environmentId }, data: { staleAt: new Date(0) } });
  await service.runOut("staleness");
  await tenant.observeEnvironment({ environmentId });
  await tenant.configureEnvironment({ environmentId, ...times });
  await tenant.configureEnvironment({ environmentId, ...times });
  await tenant.retireEnvironment({ environmentId });

  const operator = `operator of ${tenantId}`;
  expect(await history()).toEqual([
    {
      actor: "observer:engine",
      facts: facts(
        fact("/state", "UNOBSERVED", "FRESH"),
        fact("/health", "UNKNOWN", "HEALTHY"),
        fact("/versions/BASELINE/applied", null, 1),
        fact("/resources/BASELINE/terraform_data.app", null, { resourceType: "terraform_data", resourceId: "app-1" }),
      ),
    },
    { actor: "deadline:staleness", facts: [fact("/state", "FRESH", "STALE")] },
    { actor: "observer:engine", facts: [fact("/state", "STALE", "FRESH")] },
    { actor: operator, facts: [fact("/observeSeconds", 60, 30), fact("/staleAfterSeconds", 300, 120)] },
    { actor: operator, facts: [fact("/state", "FRESH", "RETIRED")] },
  ]);
});

test("a failure of an environment that was never seen is recorded though it isn't announced", async () => {
  await tenant.observeEnvironment({ environmentId });
  await tenant.observeEnvironment({ environmentId });
  expect(await history()).toEqual([
    {
      actor: "observer:engine",
      facts: [
        fact("/healthReason", null, expect.stringContaining("does not exist")),
        fact("/observationFailure", null, expect.stringContaining("does not exist")),
      ],
    },
  ]);
});

test("a declared version and an agent's word are recorded", async () => {
  const declared = {
    ...{ environmentId, tenantId, version: 3, specificationId: uuidv7(), kind: SpecificationKind.RELEASE },
    programVersion: "shop@1.0.0",
  };
  const event = () => eventAbout(SpecificationDeclaredSchema, declared, { id: environmentId, tenantId });
  await service.deliver(event());
  await service.deliver(event());
  const component = { name: "api", version: "1", replicasDesired: 1, replicasReady: 1 };
  const observation = { observedAt: timestampFromDate(new Date()), components: [component] };
  await tenant.observeEnvironment({ environmentId, observation });
  expect(await history()).toMatchObject([
    { actor: "event:TrackDeclared", facts: [fact("/versions/RELEASE/declared", null, 3)] },
    { actor: "observer:push", facts: facts(fact("/components/api/version", null, "1")) },
  ]);
});

test("replicas that look at one environment at once record what moved once", async () => {
  const components = [{ name: "api", version: "1", replicas: 1 }];
  service.provisioning.applied.set(environmentId, [applied({ components })]);
  const signal = new AbortController().signal;
  const looks = await Promise.all(Array.from({ length: 6 }, () => observeNow(service.context, environmentId, signal)));
  expect(looks.filter(({ changed }) => changed)).toHaveLength(1);
  expect(await history()).toHaveLength(1);
  expect(await service.database.component.count({ where: { inventoryId: environmentId } })).toBe(1);
});
