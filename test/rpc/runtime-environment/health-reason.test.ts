import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ComponentSchema } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import { DriftKind, Health } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { type HttpSide, says, startHttpSide } from "../../observers/http-side.ts";
import { applied } from "../../_support/provisioning-server.ts";
import {
  type EnvironmentClient,
  type EnvironmentService,
  refusalOf,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

type Pushed = MessageInitShape<typeof ComponentSchema>;

let service: EnvironmentService;
let side: HttpSide;
let tenantId: string;
let tenant: EnvironmentClient;
let environmentId: string;

beforeAll(async () => {
  service = await startEnvironments();
  side = await startHttpSide();
});
afterAll(async () => {
  await side.close();
  await service.close();
});
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = await service.created(tenantId);
});

const push = (...components: Pushed[]) =>
  tenant.observeEnvironment({ environmentId, observation: { observedAt: timestampFromDate(new Date()), components } });
const look = async () => (await tenant.observeEnvironment({ environmentId })).environment;
const api = (changes: Pushed = {}): Pushed => ({ name: "api", replicasDesired: 3, replicasReady: 3, ...changes });
/** What an environment's changes say of why something isn't healthy, oldest first. */
const told = async () => {
  const { changes } = await tenant.listInventoryChanges({ environmentId });
  const facts = changes.reverse().flatMap((change) => change.facts);
  return facts.flatMap(({ path, to }) => (path.endsWith("/healthReason") ? [[path, to?.kind.value]] : []));
};

test("what isn't healthy says why: the component, the environment, and each change of it", async () => {
  const { environment } = await push(api({ replicasReady: 1 }), { name: "web", replicasDesired: 1, replicasReady: 1 });
  expect(environment).toMatchObject({
    health: Health.DEGRADED,
    healthReason: "api: 1 of 3 replicas ready",
    components: [{ name: "api", healthReason: "1 of 3 replicas ready" }, { name: "web" }],
  });
  expect(environment?.components[1]?.healthReason).toBeUndefined();
  const well = await push(api(), { name: "web", replicasDesired: 1, replicasReady: 1 });
  expect(well.environment?.healthReason).toBeUndefined();
  expect(await told()).toEqual([
    ["/components/api/healthReason", "1 of 3 replicas ready"],
    ["/healthReason", "api: 1 of 3 replicas ready"],
    ["/components/api/healthReason", undefined],
    ["/healthReason", undefined],
  ]);
});

test("an agent's own words are told; one that has none is quoted with what it reports", async () => {
  const reason = "the queue is full";
  const said = await push(api({ health: Health.DEGRADED, healthReason: reason }), {
    name: "web",
    health: Health.DEGRADED,
  });
  expect(said.environment?.healthReason).toBe("api: the queue is full; web: push reports DEGRADED");
  const long = await refusalOf(push(api({ health: Health.DEGRADED, healthReason: "x".repeat(301) })));
  expect(long).toMatchObject({ code: Code.InvalidArgument });
  expect(long.message).toContain("observation.components[0].healthReason: must be at most 300");
  const unprintable = await refusalOf(push(api({ health: Health.DEGRADED, healthReason: "a\u0000b" })));
  expect(unprintable.message).toContain("observation.components[0].healthReason");
});

test("of a component that is asked by HTTP the path and the answer are told, and nothing else of its URL", async () => {
  side.routes.set("/healthz", says("secret", 500));
  await tenant.configureEnvironment({
    environmentId,
    observeEvery: { seconds: 60n },
    staleAfter: { seconds: 300n },
    observers: { http: { components: [{ name: "api", healthUrl: `${side.url}/healthz?key=secret` }] } },
  });
  service.provisioning.applied.set(environmentId, [applied()]);
  const seen = await look();
  expect(seen).toMatchObject({ health: Health.DEGRADED, healthReason: "api: GET /healthz answered 500" });
  expect(JSON.stringify(await told())).not.toContain("secret");
});

test("resources that are missing, and an observer that can't look, are told of as well", async () => {
  const drift = [{ address: "terraform_data.app", kind: DriftKind.RESOURCE_MISSING, attribute: "" }];
  service.provisioning.applied.set(environmentId, [applied({ drift })]);
  expect(await look()).toMatchObject({ healthReason: "applied resources that are missing: 1" });
  service.provisioning.applied.set(environmentId, new ConnectError("the engine is away", Code.Unavailable));
  const failed = await look();
  expect(failed?.health).toBe(Health.UNKNOWN);
  expect(failed?.healthReason).toBe(failed?.observationFailure);
});

test("many reasons are told in short", async () => {
  const crowd = Array.from({ length: 500 }, (_, index) => ({ name: `c${index}`, health: Health.DEGRADED }));
  const healthReason = "x".repeat(300);
  const { environment } = await push(...crowd.map((each) => ({ ...each, healthReason })));
  expect(environment?.healthReason?.length).toBeLessThanOrEqual(1_000);
  expect(environment?.healthReason).toMatch(/; and 495 more$/);
});

test("what isn't healthy for the same reason as before writes nothing but the times", async () => {
  const rows = () => service.database.$queryRaw`
    SELECT name, xmin::text FROM component WHERE inventory_id = ${environmentId} ORDER BY name`;
  await push(api({ replicasReady: 1 }));
  const before = await rows();
  const again = await push(api({ replicasReady: 1 }));
  expect(again).toMatchObject({ changed: false, environment: { revision: 1n } });
  expect(await rows()).toEqual(before);
});
