import { writeFile } from "node:fs/promises";
import path from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { ProvisioningKind, RunMode, RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { gatedEngine } from "../../_support/gated-engine.ts";
import { writeGatedProgram } from "../../_support/iac-programs.ts";
import {
  declare,
  type IacService,
  plan,
  type ProvisioningClient,
  startIacProvisioning,
  webService,
} from "../../_support/iac-provisioning.ts";
import { type Listening, listening, reading } from "./listening.ts";

let service: IacService;
let server: Listening;
let tenantId: string;
let tenant: ProvisioningClient;
const stops: AbortController[] = [];

beforeAll(async () => {
  service = await startIacProvisioning();
  server = await listening(service);
});
afterAll(async () => {
  await server.close();
  await service.close();
});
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = (await server.connect(tenantId)).client;
});
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

function watching(provisioningRunId: string, client = tenant) {
  const stop = new AbortController();
  stops.push(stop);
  return reading(client.watchProvisioningRun({ provisioningRunId }, { signal: stop.signal }));
}

/** A release of an environment of its own. */
async function declared(): Promise<string> {
  return declare(tenant, webService(await service.environment(tenantId)));
}

/** Takes a run through these states in the database alone, as other processes would. */
async function move(runId: string, ...states: Exclude<keyof typeof RunState, "UNSPECIFIED">[]): Promise<void> {
  const at = service.context.clock.now();
  for (const state of states) {
    await service.database.provisioningRun.update({
      where: { id: runId },
      data: {
        state,
        version: { increment: 1 },
        ...(state === "APPLYING" && { applyingAt: at }),
        ...(state === "INDETERMINATE" && { endedAt: at }),
      },
    });
  }
}

test("tells a run as it is, each change of it, and its end, which ends the stream", async () => {
  const runId = await plan(tenant, await declared());
  const watch = watching(runId);
  const queued = await watch.next();
  expect(queued).toMatchObject({ run: { provisioningRunId: runId, state: RunState.QUEUED, queuePosition: 1 } });
  expect(queued?.run?.executor).toBeUndefined();
  expect(queued?.progress).toBeUndefined();

  const { engines } = service.context;
  const gate = gatedEngine(engines.manifests);
  service.context.engines = { ...engines, manifests: gate.engine };
  const worked = service.execute(runId);
  const planning = await watch.next();
  expect(planning?.run).toMatchObject({
    state: RunState.PLANNING,
    executor: { executorId: service.context.executorId, epoch: 1, leaseUntil: expect.anything() },
  });
  expect(planning?.run?.queuePosition).toBeUndefined();

  gate.open();
  await worked;
  service.context.engines = engines;
  const heard = await watch.rest();
  const end = heard.at(-1);
  expect(end?.run).toMatchObject({ state: RunState.APPLIED, endedAt: expect.anything() });
  expect(end?.run?.executor).toBeUndefined();
  const adds = end?.run?.planSummary?.adds;
  expect(adds).toBeGreaterThan(0);
  expect(end?.progress).toMatchObject({ planned: adds, done: adds, failed: 0, inProgress: [] });
  expect(heard.filter(({ run }) => run?.state === RunState.APPLIED)).toHaveLength(1);
});

test("tells how far an apply has come, and what is being worked on", async () => {
  const gate = path.join(service.targets, uuidv7());
  const programVersion = await writeGatedProgram(service.programs);
  const declaration = { ...webService(await service.environment(tenantId)), programVersion, parameters: { gate } };
  const runId = await plan(tenant, await declare(tenant, declaration));
  const watch = watching(runId);
  const worked = service.execute(runId);
  const halfway = await watch.find("a resource in progress", ({ progress }) => progress?.inProgress.length === 1);
  expect(halfway.run?.state).toBe(RunState.APPLYING);
  expect(halfway.progress).toMatchObject({
    planned: 2,
    done: 1,
    failed: 0,
    inProgress: ["terraform_data.second"],
  });

  await writeFile(gate, "");
  await worked;
  const end = (await watch.rest()).at(-1);
  expect(end?.run?.state).toBe(RunState.APPLIED);
  expect(end?.progress).toMatchObject({ planned: 2, done: 2, inProgress: [] });
});

test("takes a replacement that is between its steps for work, and for a failure once the run has ended", async () => {
  const runId = await plan(tenant, await declared());
  await move(runId, "PLANNING", "APPROVED", "APPLYING");
  const replacement = { runId, actions: ["delete", "create"], outcome: "DELETED_NOT_RECREATED" as const };
  await service.database.receiptEntry.createMany({
    data: [
      { ...replacement, ordinal: 0, address: "half" },
      { ...replacement, ordinal: 1, address: "failed", diagnostic: "no room" },
      { runId, ordinal: 2, address: "whole", actions: ["create"], outcome: "APPLIED" },
      { runId, ordinal: 3, address: "looked at", actions: ["read"], outcome: "NO_OP" },
      { runId, ordinal: 4, address: "later", actions: ["update"], outcome: "NOT_ATTEMPTED" },
    ],
  });
  const watch = watching(runId);
  expect((await watch.next())?.progress).toMatchObject({ planned: 4, done: 1, failed: 1, inProgress: ["half"] });
  await move(runId, "PARTIALLY_APPLIED");
  expect((await watch.next())?.progress).toMatchObject({ planned: 4, done: 1, failed: 2, inProgress: [] });
  expect(await watch.next()).toBeUndefined();
});

test("tells a run that it comes forward in its queue, and one that only plans of none", async () => {
  const specificationId = await declared();
  const planned = async (mode: RunMode) => {
    const { run } = await tenant.planProvisioning({ specificationId, kind: ProvisioningKind.PROMOTION, mode });
    return { id: run?.provisioningRunId ?? "", position: run?.queuePosition };
  };
  const first = await planned(RunMode.APPLY);
  const beside = await planned(RunMode.PLAN_ONLY);
  const second = await planned(RunMode.APPLY);
  const third = await planned(RunMode.APPLY);
  expect([first, beside, second, third].map(({ position }) => position)).toEqual([1, undefined, 2, 3]);

  const watch = watching(third.id);
  expect((await watch.next())?.run?.queuePosition).toBe(3);
  await tenant.cancelProvisioning({ provisioningRunId: first.id });
  expect((await watch.next())?.run?.queuePosition).toBe(2);
  const { runs } = await tenant.listProvisioningRuns({ state: RunState.QUEUED });
  expect(runs.map(({ provisioningRunId, queuePosition }) => [provisioningRunId, queuePosition])).toEqual([
    [third.id, 2],
    [second.id, 1],
    [beside.id, undefined],
  ]);
});

test("stays with a run that is INDETERMINATE until it is resolved", async () => {
  const runId = await plan(tenant, await declared());
  await move(runId, "PLANNING", "APPROVED", "APPLYING", "INDETERMINATE");
  const watch = watching(runId);
  expect((await watch.next())?.run?.state).toBe(RunState.INDETERMINATE);
  await tenant.resolveIndeterminate({ provisioningRunId: runId, resolution: "nothing was done" });
  expect((await watch.next())?.run?.state).toBe(RunState.RESOLVED);
  expect(await watch.next()).toBeUndefined();
});

test("tells a run that is over once, and ends", async () => {
  const runId = await plan(tenant, await declared());
  await tenant.cancelProvisioning({ provisioningRunId: runId });
  const watch = watching(runId);
  expect((await watch.next())?.run?.state).toBe(RunState.CANCELLED);
  expect(await watch.next()).toBeUndefined();
});

test("another tenant's run and one that doesn't exist are both NOT_FOUND", async () => {
  const runId = await plan(tenant, await declared());
  const stranger = await server.connect(`tenant-${uuidv7()}`);
  for (const [id, client] of [
    [runId, stranger.client],
    [uuidv7(), tenant],
  ] as const) {
    const refusal = await watching(id, client).next().catch(ConnectError.from);
    expect(refusal).toMatchObject({ code: Code.NotFound, rawMessage: `provisioning run ${id} does not exist` });
  }
});
