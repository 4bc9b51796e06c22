import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Environment } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import {
  DriftKind,
  FindingState,
  Health,
  InventoryState,
  SyncStatus,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { deploy, type TestDeployment } from "../_support/deployment.ts";
import {
  type DriftingEnvironment,
  driftingEnvironment,
  publish,
  QUICK_BASELINE,
} from "../_support/drifting-environments.ts";

const START_MS = 90_000;
const TEST_MS = 60_000;

let deployment: TestDeployment;
let components: Components;
let environment: DriftingEnvironment;

beforeAll(async () => {
  components = await startComponents();
  const services = ["iac-provisioning", "runtime-environment"] as const;
  const env = { HTTP_OBSERVER_LOOPBACK: "allow" };
  deployment = await deploy(services, undefined, { baselineProgram: QUICK_BASELINE, env });
  const { stage } = deployment;
  await publish(stage, PROGRAM, PROGRAM_FILES);
  const parameters = { address: components.address };
  environment = await driftingEnvironment(stage, { programVersion: PROGRAM, parameters });
  await stage.environments.configureEnvironment({
    environmentId: environment.environmentId,
    observeEvery: { seconds: 3_600n },
    staleAfter: { seconds: 7_200n },
    observers: { http: { timeout: { seconds: 1n } }, push: {} },
  });
  await observedAs({ health: Health.HEALTHY });
}, START_MS);
afterAll(async () => {
  await deployment.close();
  await components.close();
}, START_MS);

/** Looks until the environment is seen like that: what is asked is known once the engine has said where it is. */
function observedAs(expected: Partial<Environment>): Promise<Environment> {
  return eventually(`an environment like ${JSON.stringify(expected)}`, async () => {
    const seen = await environment.observe();
    expect(seen).toMatchObject(expected);
    return seen;
  });
}

const names = (seen: Environment) => seen.components.map(({ name }) => name);
const statusOf = ({ observers }: Environment, observer: string) => observers.find((each) => each.observer === observer);
/** How many observations of agents were too old, as the service counts them. */
const tooOld = async () => {
  const { ADMIN_PORT } = deployment.services.variables("runtime-environment");
  const metrics = await (await fetch(`http://127.0.0.1:${ADMIN_PORT}/metrics`)).text();
  return Number(/^observations_ignored_total\{observer="push".*\} (\d+)$/m.exec(metrics)?.[1] ?? 0);
};

test(
  "an observer that hangs holds up no other: what they see is found, and health is UNKNOWN for a reason",
  async () => {
    components.answers("silence", "silence");
    await environment.setReplicas(1);
    const before = await environment.get();
    const seen = await environment.observe();
    expect(seen).toMatchObject({ state: InventoryState.FRESH, health: Health.UNKNOWN, sync: SyncStatus.DRIFTED });
    expect(seen.observationFailure).toMatch(/^http: /);
    expect(await environment.findings()).toMatchObject([{ observer: "engine", attribute: "spec.replicas" }]);
    expect(names(seen)).toEqual(["api", "worker"]);
    expect(seen.resources).toEqual(before.resources);
    expect(statusOf(seen, "http")).toMatchObject({ failures: 1, retryAt: expect.anything() });
    expect(statusOf(seen, "http")?.observedAt).toEqual(statusOf(before, "http")?.observedAt);
    expect(statusOf(seen, "engine")).toMatchObject({ failures: 0 });
    expect(statusOf(seen, "engine")?.failure).toBeUndefined();
  },
  TEST_MS,
);

test(
  "an observer that returns half has that half taken in, and what it didn't see stays",
  async () => {
    components.answers("well", "silence");
    components.version = "2.0.0";
    const seen = await environment.observe();
    expect(names(seen)).toEqual(["api", "worker"]);
    expect(seen.health).toBe(Health.UNKNOWN);
    expect(seen.observationFailure).toMatch(/^http: worker: /);
    const versions = seen.comparisons.map(({ name, applied, seen: all }) => ({
      name,
      applied: applied?.version,
      http: all.find(({ observer }) => observer === "http")?.component?.version,
    }));
    expect(versions).toEqual([
      { name: "api", applied: "1.0.0", http: "2.0.0" },
      { name: "worker", applied: "1.0.0", http: "1.0.0" },
    ]);
    const mismatches = (await environment.findings()).filter(({ kind }) => kind === DriftKind.VERSION_MISMATCH);
    expect(mismatches).toMatchObject([{ resource: "component/api", observer: "http" }]);
  },
  TEST_MS,
);

test(
  "an engine that fails takes nothing away, and the others go on seeing",
  async () => {
    components.answers("well", "well");
    components.version = "1.0.0";
    const before = await observedAs({ health: Health.HEALTHY });
    await deployment.services.kill("iac-provisioning");
    components.version = "3.0.0";

    const seen = await environment.observe();
    expect(seen.health).toBe(Health.UNKNOWN);
    expect(seen.observationFailure).toMatch(/^engine: /);
    expect(seen.resources).toEqual(before.resources);
    expect(seen.versions).toEqual(before.versions);
    expect(seen.sync).toBe(SyncStatus.DRIFTED);
    expect(seen.comparisons.flatMap(({ seen: all }) => all.map(({ component }) => component?.version))).toEqual([
      "3.0.0",
      "3.0.0",
    ]);
    const open = (await environment.findings()).filter(({ state }) => state === FindingState.OPEN);
    expect(open.map(({ resource, observer }) => `${resource} by ${observer}`).sort()).toEqual([
      "component/api by http",
      "component/worker by http",
      "web.yaml by engine",
    ]);

    await deployment.services.start("iac-provisioning");
    components.version = "1.0.0";
    await environment.setReplicas(3);
    const well = await observedAs({ health: Health.HEALTHY, sync: SyncStatus.IN_SYNC });
    expect(well.observationFailure).toBeUndefined();
    expect(well.observers.map(({ failures }) => failures)).toEqual(well.observers.map(() => 0));
  },
  TEST_MS,
);

test(
  "an observation that is older than the last one of its observer is ignored, and counted",
  async () => {
    const { environmentId } = environment;
    const push = (at: Date, replicasReady: number) =>
      deployment.stage.environments.observeEnvironment({
        environmentId,
        observation: {
          observedAt: timestampFromDate(at),
          components: [{ name: "api", version: "1.0.0", replicasDesired: 2, replicasReady }],
        },
      });
    const now = Date.now();
    const newest = await push(new Date(now), 2);
    const late = await push(new Date(now - 30_000), 0);
    expect(late.changed).toBe(false);
    expect(late.environment).toEqual(newest.environment);
    expect(await tooOld()).toBe(1);
    const { changes } = await deployment.stage.environments.listInventoryChanges({ environmentId });
    expect(changes[0]?.revision).toBe(newest.environment?.revision);
  },
  TEST_MS,
);

const PROGRAM = "asked@1.0.0";
const PROGRAM_FILES = {
  "program.yaml": `
engine: manifests
description: One deployment of two components, which can be asked how they are.
parameters:
  address: { type: string, required: true }
outputs:
  components:
    - name: api
      version: 1.0.0
      replicas: 2
      healthUrl: \${address}/api/health
      versionUrl: \${address}/api/version
    - name: worker
      version: 1.0.0
      replicas: 1
      healthUrl: \${address}/worker/health
      versionUrl: \${address}/worker/version
`,
  "templates/web.yaml": "apiVersion: apps/v1\nkind: Deployment\nspec:\n  replicas: 3\n",
};

type Answer = "well" | "silence";

/** What runs in the environment: two components that answer, or don't. */
interface Components {
  address: string;
  /** What both say. */
  version: string;
  answers(api: Answer, worker: Answer): void;
  close(): Promise<void>;
}

async function startComponents(): Promise<Components> {
  let answers: Record<string, Answer> = {};
  const server: Server = createServer((request, response) => {
    const [, name = ""] = (request.url ?? "").split("/");
    if (answers[name] === "silence") return;
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ version: started.version }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  const started: Components = {
    address: `http://127.0.0.1:${address.port}`,
    version: "1.0.0",
    answers: (api, worker) => void (answers = { api, worker }),
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  return started;
}
