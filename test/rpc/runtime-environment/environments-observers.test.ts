import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import {
  FindingGrouping,
  Health,
  InventoryState,
  ReconciliationDirection,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
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
let api: Component;

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = await service.created(tenantId);
  api = await startComponent();
});
afterEach(() => api.close());

/** A component that answers as a test tells it to. */
interface Component {
  url: string;
  asked: number;
  answer: (response: ServerResponse) => void;
  close(): Promise<void>;
}

async function startComponent(): Promise<Component> {
  const server: Server = createServer((_request, response) => {
    component.asked += 1;
    component.answer(response);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = addressOf(server);
  const component: Component = {
    url: `http://127.0.0.1:${port}/healthz`,
    asked: 0,
    answer: well,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return component;
}

function addressOf(server: Server): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the component doesn't listen");
  return address;
}

const well = (response: ServerResponse) => void response.writeHead(200).end("ok");
const broken = (response: ServerResponse) => void response.writeHead(500).end();
const times = { observeEvery: { seconds: 30n }, staleAfter: { seconds: 120n } };
const http = (name = "api") => ({ components: [{ name, healthUrl: api.url }] });
const configure = (observers: object) => tenant.configureEnvironment({ environmentId, ...times, observers });
const scheduledLook = () => observeNow(service.context, environmentId, new AbortController().signal);
const current = async () => (await tenant.getEnvironment({ environmentId })).environment;
const statusOf = async (observer: string) =>
  (await current())?.observers.find((status) => status.observer === observer);
const releaseOf = (name: string) =>
  applied({ kind: SpecificationKind.RELEASE, components: [{ name, version: "1.4.0", replicas: 2 }] });

test("what was applied stands beside what each observer sees", async () => {
  service.provisioning.applied.set(environmentId, [releaseOf("api")]);
  await configure({ http: http() });
  api.answer = broken;
  const { environment } = await tenant.observeEnvironment({ environmentId });

  expect(environment).toMatchObject({
    health: Health.DEGRADED,
    components: [{ name: "api", version: "1.4.0", replicasDesired: 2, health: Health.DEGRADED }],
    comparisons: [
      {
        name: "api",
        applied: { version: "1.4.0", replicas: 2 },
        seen: [{ observer: "http", component: { name: "api", version: "", health: Health.DEGRADED } }],
      },
    ],
    observers: [{ observer: "engine" }, { observer: "http" }],
  });
  const [comparison] = environment?.comparisons ?? [];
  expect(comparison?.seen[0]?.observedAt).toEqual(environment?.observers[1]?.observedAt);
});

test("an observer that hangs holds up no other: what the engine saw is taken in meanwhile", async () => {
  service.provisioning.applied.set(environmentId, [releaseOf("api")]);
  await configure({ http: http() });
  const hanging = new Promise<ServerResponse>((resolve) => (api.answer = resolve));
  const looking = tenant.observeEnvironment({ environmentId });
  const held = await hanging;
  while ((await current())?.state !== InventoryState.FRESH) await new Promise((resolve) => setImmediate(resolve));
  expect((await statusOf("http"))?.observedAt).toBeUndefined();
  well(held);
  expect((await looking).environment?.comparisons[0]?.seen).toMatchObject([{ observer: "http" }]);
});

test("a failing observer is left out of the schedule's looks until its time has come, and asked on demand", async () => {
  service.provisioning.applied.set(environmentId, [releaseOf("api")]);
  await configure({ http: http() });
  await scheduledLook();
  await api.close();
  await tenant.observeEnvironment({ environmentId });
  const failing = await statusOf("http");
  expect(failing).toMatchObject({ failures: 1, failure: expect.stringContaining("api: ") });
  const pause = Number(failing?.retryAt?.seconds) * 1_000 - Date.now();
  expect(pause).toBeGreaterThan(0);
  expect(pause).toBeLessThanOrEqual(5_000);

  await scheduledLook();
  expect((await statusOf("http"))?.failures).toBe(1);
  expect((await statusOf("engine"))?.failures).toBe(0);

  const key = { inventoryId_observer: { inventoryId: environmentId, observer: "http" } };
  await service.database.observerReport.update({ where: key, data: { retryAt: new Date(0) } });
  await scheduledLook();
  expect((await statusOf("http"))?.failures).toBe(2);
  await tenant.observeEnvironment({ environmentId });
  expect((await statusOf("http"))?.failures).toBe(3);
  expect((await current())?.state).toBe(InventoryState.FRESH);
});

test("an observer that sees again is with the next look, and its failures are forgotten", async () => {
  service.provisioning.applied.set(environmentId, [releaseOf("api")]);
  await configure({ http: { components: [{ name: "api", healthUrl: api.url }], timeout: { seconds: 1n } } });
  api.answer = () => undefined;
  await tenant.observeEnvironment({ environmentId });
  expect(await statusOf("http")).toMatchObject({ failures: 1 });
  api.answer = well;
  await tenant.observeEnvironment({ environmentId });
  const { failures, failure, retryAt } = (await statusOf("http")) ?? {};
  expect({ failures, failure, retryAt }).toEqual({ failures: 0, failure: undefined, retryAt: undefined });
  expect((await current())?.observationFailure).toBeUndefined();
});

test("who is no longer configured is forgotten, with its failure and what it saw", async () => {
  service.provisioning.applied.set(environmentId, [releaseOf("api")]);
  await configure({ http: http("web") });
  await tenant.observeEnvironment({ environmentId });
  expect((await current())?.components.map(({ name }) => name)).toEqual(["api", "web"]);
  await configure({});
  const environment = await current();
  expect(environment?.components.map(({ name }) => name)).toEqual(["api"]);
  expect(environment?.observers.map(({ observer }) => observer)).toEqual(["engine"]);
  expect(service.enqueued).toContain(environmentId);
});

test("what an observer sees that was configured away meanwhile is left alone", async () => {
  service.provisioning.applied.set(environmentId, [releaseOf("api")]);
  await configure({ http: http("web") });
  const hanging = new Promise<ServerResponse>((resolve) => (api.answer = resolve));
  const looking = tenant.observeEnvironment({ environmentId });
  const held = await hanging;
  await configure({});
  well(held);
  const { environment } = await looking;
  expect(environment?.observers.map(({ observer }) => observer)).toEqual(["engine"]);
  expect(environment?.components.map(({ name }) => name)).toEqual(["api"]);
});

test("a configuration leaves as it was what it doesn't name", async () => {
  const push = { agents: ["agent of shop"] };
  const { environment: configured } = await tenant.configureEnvironment({
    ...{ environmentId, ...times, observers: { http: http(), push }, proposeAfter: { seconds: 90n } },
    proposeDirection: ReconciliationDirection.ADOPT_OBSERVED,
    grouping: FindingGrouping.RESOURCE,
  });
  expect(configured).toMatchObject({
    proposeAfter: { seconds: 90n },
    proposeDirection: ReconciliationDirection.ADOPT_OBSERVED,
    grouping: FindingGrouping.RESOURCE,
    configuredObservers: { http: { components: [{ name: "api", healthUrl: api.url }] }, push },
  });
  const { environment } = await tenant.configureEnvironment({ environmentId, ...times });
  expect(environment).toMatchObject({
    proposeDirection: ReconciliationDirection.ADOPT_OBSERVED,
    grouping: FindingGrouping.RESOURCE,
  });
  expect(environment?.configuredObservers).toEqual(configured?.configuredObservers);
  expect(environment?.proposeAfter).toBeUndefined();
});

test("observers that can't work are refused, each by its field, and nothing is configured", async () => {
  const component = { name: "api", healthUrl: "ftp://api.shop.svc/healthz" };
  const observers = {
    http: { components: [component, { name: "api", healthUrl: "http://api.shop.svc/healthz" }] },
    kubernetes: { cluster: "nowhere", namespace: "shop" },
  };
  const { code, rawMessage } = await refusalOf(configure(observers));
  expect(code).toBe(Code.InvalidArgument);
  for (const field of [
    "observers.http.components[0].healthUrl",
    "observers.http.components[1].name",
    "observers.kubernetes.cluster",
  ]) {
    expect(rawMessage).toContain(field);
  }
  const http31s = { ...http(), timeout: { seconds: 31n } };
  expect((await refusalOf(configure({ http: http31s }))).rawMessage).toContain("timeout");
  expect(Object.keys((await current())?.configuredObservers ?? {})).toEqual(["$typeName"]);
});

test("an agent's older observation is counted as ignored, the others by what came of them", async () => {
  const counted = async (name: string) => {
    const metric = await service.registry.getSingleMetric(name)?.get();
    return metric?.values
      .filter(({ labels }) => labels["observer"] === "push")
      .map(({ labels, value }) => ({ ...labels, value }));
  };
  const push = (secondsAgo: number, replicasReady = 1) =>
    tenant.observeEnvironment({
      environmentId,
      observation: {
        observedAt: timestampFromDate(new Date(Date.now() - secondsAgo * 1_000)),
        components: [{ name: "api", version: "1", replicasDesired: 1, replicasReady }],
      },
    });
  await push(30);
  await push(20);
  expect((await push(25, 0)).changed).toBe(false);
  expect(await counted("observations_ignored_total")).toEqual([{ observer: "push", value: 1 }]);
  expect(await counted("observations_total")).toEqual(
    expect.arrayContaining([
      { observer: "push", outcome: "changed", value: 1 },
      { observer: "push", outcome: "unchanged", value: 1 },
    ]),
  );
});
