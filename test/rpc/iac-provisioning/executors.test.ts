import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { ProvisioningKind, RunMode } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { enqueueWork, startWorkQueue } from "@runtime-cloud/eventing/queues/work-queue";
import type { Engine, EngineSignals } from "@runtime-cloud/iac-provisioning/engines/engine";
import { executeNext } from "@runtime-cloud/iac-provisioning/execution/executor";
import { takeNext } from "@runtime-cloud/iac-provisioning/execution/next-run";
import { registerRunMetrics } from "@runtime-cloud/iac-provisioning/runs/run-metrics";
import { RUN_QUEUE } from "@runtime-cloud/iac-provisioning/runs/run-queue";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { Registry } from "prom-client";
import { z } from "zod";
import { gatedEngine, type GatedEngine, haltingEngine } from "../../_support/gated-engine.ts";
import { declare, type IacService, plan, startIacProvisioning, webService } from "../../_support/iac-provisioning.ts";
import { testRedis } from "../../_support/redis.ts";

const WAIT_MS = 60_000;

let service: IacService;
beforeEach(async () => {
  service = await startIacProvisioning({ CANCEL_GRACE_SECONDS: "30" });
});
afterEach(() => service.close());

/** Runs that only plan, all of them ready: they wait for nobody but an executor. Each is a copy of the first. */
async function readyRuns(tenantId: string, count: number): Promise<string[]> {
  const client = service.as(tenantId);
  const specificationId = await declare(client, webService(await service.environment(tenantId)));
  const first = await plan(client, specificationId, ProvisioningKind.PROMOTION, RunMode.PLAN_ONLY);
  const {
    id,
    outputs: _none,
    ...run
  } = await service.database.provisioningRun.findUniqueOrThrow({ where: { id: first } });
  const copies = Array.from({ length: count - 1 }, () => ({ ...run, id: uuidv7() }));
  await service.database.provisioningRun.createMany({ data: copies });
  return [id, ...copies.map((copy) => copy.id)];
}

/** A run that applies, in an environment of its own. */
async function applyRun(tenantId: string, of?: "PRODUCTION"): Promise<string> {
  const client = service.as(tenantId);
  return plan(client, await declare(client, webService(await service.environment(tenantId, of))));
}

/** What works on the queue's jobs in a process that is an executor. */
function startExecutor(backend: QueueBackend, concurrency: number) {
  return startWorkQueue({
    name: RUN_QUEUE,
    backend,
    concurrency,
    data: z.object({ runId: z.guid() }),
    handle: ({ runId }, signal) => executeNext(service.context, runId, signal),
    logger: silentLogger(),
  });
}

function useEngine(make: (engine: Engine, minds: keyof EngineSignals) => GatedEngine) {
  const { manifests } = service.context.engines;
  const gate = make(manifests, "interrupt");
  service.context.engines = { ...service.context.engines, manifests: gate.engine };
  return { ...gate, restore: () => void (service.context.engines = { ...service.context.engines, manifests }) };
}

test("gives every tenant its turn at one executor, however many runs another one queued before", async () => {
  await readyRuns("many", 50);
  for (const tenantId of ["a", "b", "c"]) await readyRuns(tenantId, 1);
  const served: (string | undefined)[] = [];
  for (let turn = 0; turn < 6; turn += 1) served.push((await service.executeNext())?.tenantId);
  expect(served).toEqual(["many", "a", "b", "c", "many", "many"]);
});

test("passes over a tenant that has more runs under way", async () => {
  await readyRuns("busy", 3);
  await takeNext(service.context);
  await readyRuns("other", 2);
  const taken = [await takeNext(service.context), await takeNext(service.context), await takeNext(service.context)];
  expect(taken.map((turn) => turn?.run.tenantId)).toEqual(["other", "busy", "other"]);
});

test("applies what is approved before it plans what waits for longer", async () => {
  const waiting = await applyRun("t1", "PRODUCTION");
  await service.work();
  const [older] = await readyRuns("t1", 1);
  const { planDigest } = await service.as("t1").getPlan({ provisioningRunId: waiting });
  await service.as("t1", "bob").approveProvisioning({ provisioningRunId: waiting, planDigest });
  expect(await service.executeNext()).toEqual({ runId: waiting, tenantId: "t1", state: "APPLIED", reason: null });
  expect(await service.executeNext()).toEqual({ runId: older, tenantId: "t1", state: "PLANNED", reason: null });
  expect(await service.executeNext()).toBeUndefined();
});

test("gives executors that come at once different runs, and leaves none out", async () => {
  const ready = [
    ...(await readyRuns("t1", 4)),
    await applyRun("t1"),
    await applyRun("t2"),
    ...(await readyRuns("t3", 2)),
  ];
  const other = { ...service.context, executorId: "other" };
  const turns = await Promise.all(ready.map((_, index) => takeNext(index % 2 === 0 ? service.context : other)));
  expect(turns.map((turn) => turn?.run.id).sort()).toEqual([...ready].sort());
  expect(await takeNext(service.context)).toBeUndefined();
});

test("keeps a job for each run that waits, when a job serves another run than its own", async () => {
  const jobs: string[] = [];
  service.context.enqueue = (_queue, id) => Promise.resolve(void jobs.push(id));
  const [first = ""] = await readyRuns("t1", 1);
  const [second = ""] = await readyRuns("t2", 1);
  await until("their jobs", WAIT_MS, () => [first, second].every((run) => jobs.includes(`${run}.0`)) || undefined);
  jobs.splice(0);
  const stop = new AbortController().signal;
  expect(await executeNext(service.context, second, stop)).toMatchObject({ runId: first });
  expect(jobs).toEqual([`${first}.0`]);
  expect(await executeNext(service.context, second, stop)).toMatchObject({ runId: second });
  expect(jobs).toEqual([`${first}.0`]);
});

test("works on every run after the queue lost its jobs, and its jobs say which run had its turn", async () => {
  const backend = redisBackend({ ...testRedis(), logger: silentLogger() });
  service.context.enqueue = (queue, id, data) => enqueueWork(backend, queue, id, data);
  const queue = backend.queue(RUN_QUEUE);
  const runIds = [...(await readyRuns("t1", 5)), await applyRun("t2")];
  await until("their jobs", WAIT_MS, async () => ((await queue.getWaitingCount()) > 1 ? true : undefined));
  await queue.obliterate({ force: true });

  const worker = startExecutor(backend, 2);
  await service.runOut("run-queue");
  const ended = { id: { in: runIds }, endedAt: { not: null } };
  await until("the runs' ends", WAIT_MS, async () => {
    const count = await service.database.provisioningRun.count({ where: ended });
    return count === runIds.length ? true : undefined;
  });
  const results = await until("the jobs' results", WAIT_MS, async () => {
    const done = (await queue.getCompleted()).flatMap(({ returnvalue }) => (returnvalue ? [returnvalue] : []));
    return done.length >= runIds.length ? done : undefined;
  });
  expect(results).toEqual(
    expect.arrayContaining(runIds.map((runId) => expect.objectContaining({ runId, reason: null }))),
  );
  await worker.close();
  await backend.close();
});

test("takes a run over as soon as its executor's lease is over, though that one's job counts as under way", async () => {
  const backend = redisBackend({ ...testRedis(), logger: silentLogger() });
  service.context.enqueue = (queue, id, data) => enqueueWork(backend, queue, id, data);
  const { reached, open, restore } = useEngine((engine) => gatedEngine(engine));
  const silent = startExecutor(backend, 1);
  const runId = await applyRun("t1");
  await reached;
  restore();
  const other = startExecutor(backend, 1);
  await service.loseExecutor(runId);
  await until("the other one's apply", WAIT_MS, async () => (await service.state(runId)) === "APPLIED" || undefined);
  open();
  await Promise.all([silent.close(), other.close()]);
  await backend.close();
});

test("says of an apply that a stopping executor interrupted what was done, and why it ended", async () => {
  const { reached } = useEngine(haltingEngine);
  const runId = await applyRun("t1");
  const stopping = new AbortController();
  const working = service.execute(runId, stopping.signal);
  await reached;
  stopping.abort(new Error("the worker is stopping"));
  expect(await working).toMatchObject({
    state: "PARTIALLY_APPLIED",
    reason: "INTERRUPTED: the executor was stopped",
  });
});

test("hands back at once what a stopping executor plans, for another one to plan", async () => {
  const { reached, restore } = useEngine(gatedEngine);
  const runId = await applyRun("t1");
  const stopping = new AbortController();
  const working = service.executeNext(stopping.signal);
  await reached;
  stopping.abort(new Error("the worker is stopping"));
  await expect(working).rejects.toThrow("the worker is stopping");
  expect(await service.state(runId)).toBe("QUEUED");
  restore();
  expect(await service.executeNext()).toMatchObject({ runId, state: "APPLIED" });
});

test("ends a cancelled run CANCELLED when its planner is lost, and says who wanted that and why", async () => {
  const { reached, open } = useEngine((engine) => gatedEngine(engine));
  const provisioningRunId = await applyRun("t1");
  const silent = service.execute(provisioningRunId);
  await reached;
  await service.as("t1", "bob").cancelProvisioning({ provisioningRunId, reason: "not today" });
  await service.loseExecutor(provisioningRunId);
  const run = await service.database.provisioningRun.findUniqueOrThrow({ where: { id: provisioningRunId } });
  expect(run).toMatchObject({ state: "CANCELLED", reason: "CANCELLED: not today", decidedBy: "bob" });
  open();
  await silent;
});

test("doesn't count a version as applied that was superseded while its plan found nothing to do", async () => {
  const client = service.as("t1");
  const environmentId = await service.environment("t1");
  const applied = await declare(client, webService(environmentId));
  await plan(client, applied);
  await service.work();
  // The same content for another reviewer's eyes: a new version, and nothing to do.
  const unchanged = await declare(client, { ...webService(environmentId), reviewDestructive: true });
  const { reached, open } = useEngine((engine) => gatedEngine(engine));
  const runId = await plan(client, unchanged);
  const working = service.execute(runId);
  await reached;
  await declare(client, webService(environmentId, { replicas: 3 }));
  open();
  expect(await working).toMatchObject({
    state: "SUPERSEDED",
    reason: "SUPERSEDED: the specification became SUPERSEDED while it was being planned",
  });
});

test("takes the version that was in force out of it when a newer one is torn down before it was applied", async () => {
  const client = service.as("t1");
  const environmentId = await service.environment("t1");
  const applied = await declare(client, webService(environmentId));
  await plan(client, applied);
  await service.work();
  const declared = await declare(client, webService(environmentId, { replicas: 3 }));
  await plan(client, declared, ProvisioningKind.TEARDOWN, RunMode.DESTROY);
  await service.work();
  const specifications = await service.database.specification.findMany({ where: { environmentId } });
  expect(specifications.map(({ state }) => state)).toEqual(["WITHDRAWN", "WITHDRAWN"]);
  expect((await client.inspectEnvironment({ environmentId })).specifications).toEqual([]);
});

test("shows how many runs wait, for how long, and which were left alone", async () => {
  const registry = new Registry();
  registerRunMetrics(service.context, registry);
  await readyRuns("t1", 3);
  await takeNext(service.context);
  const [waiting] = await service.database.provisioningRun.findMany({ where: { state: "QUEUED" } });
  await service.database.$executeRaw`
    UPDATE provisioning_run SET queued_at = queued_at - interval '1 hour' WHERE id = ${waiting?.id ?? randomUUID()}::uuid`;
  await service.database.$executeRaw`
    UPDATE provisioning_run SET executor_until = clock_timestamp() - interval '1 second' WHERE state = 'PLANNING'`;
  const text = await registry.metrics();
  expect(text).toContain('provisioning_runs{state="QUEUED"} 2');
  expect(text).toContain('provisioning_runs{state="PLANNING"} 1');
  expect(text).toMatch(/^provisioning_oldest_queued_seconds 36\d\d\./m);
  expect(text).toMatch(/^provisioning_runs_unattended 1$/m);
});
