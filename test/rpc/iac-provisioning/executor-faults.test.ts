import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { gatedEngine } from "../../_support/gated-engine.ts";
import { writeGatedProgram } from "../../_support/iac-programs.ts";
import { declare, type IacService, plan, startIacProvisioning, webService } from "../../_support/iac-provisioning.ts";

const WAIT_MS = 60_000;

let service: IacService;
beforeEach(async () => {
  service = await startIacProvisioning();
});
afterEach(() => service.close());

const events = async (runId: string) => {
  const history = await service.database.transition.findMany({
    where: { aggregateId: runId },
    orderBy: { version: "asc" },
  });
  return history.map(({ event }) => event);
};

test("takes over a run whose planner fell silent, and lets that one say nothing any more", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const runId = await plan(client, await declare(client, webService(environmentId)));
  const { manifests } = service.context.engines;
  const gate = gatedEngine(manifests);
  service.context.engines = { ...service.context.engines, manifests: gate.engine };
  const silent = service.execute(runId);
  await gate.reached;
  expect(await service.runOut("executor-lost")).toEqual([]);

  await service.loseExecutor(runId);
  expect(await service.state(runId)).toBe("QUEUED");
  service.context.engines = { ...service.context.engines, manifests };
  await service.work();
  expect(await service.state(runId)).toBe("APPLIED");

  gate.open();
  await silent;
  expect(await events(runId)).toEqual(["create", "start", "loseExecutor", "start", "plan", "startApply", "complete"]);
  const { executorEpoch } = await service.database.provisioningRun.findUniqueOrThrow({ where: { id: runId } });
  expect(executorEpoch).toBe(3);
});

test("fails a run that takes one planner after the other with it, not one that planners hand back", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const runId = await plan(client, await declare(client, webService(environmentId)));
  const { manifests } = service.context.engines;
  const planned = async (end: (stopping: AbortController) => Promise<void>) => {
    const gate = gatedEngine(manifests);
    service.context.engines = { ...service.context.engines, manifests: gate.engine };
    const stopping = new AbortController();
    const working = service.execute(runId, stopping.signal);
    await gate.reached;
    await end(stopping);
    gate.open();
    await working.catch(() => undefined);
    return service.state(runId);
  };
  const stop = (stopping: AbortController) => Promise.resolve(stopping.abort(new Error("the worker is stopping")));
  const lose = () => service.loseExecutor(runId);

  const ends = [stop, stop, lose, lose, stop, lose, lose, stop, lose];
  const states = [];
  for (const end of ends) states.push(await planned(end));
  expect(states).toEqual(ends.map((_, index) => (index < ends.length - 1 ? "QUEUED" : "FAILED")));
  const { reason } = await service.database.provisioningRun.findUniqueOrThrow({ where: { id: runId } });
  expect(reason).toBe("EXECUTOR_LOST: 5 executors in turn were lost while they planned it");
});

test("blocks the environment when an applier fell silent, until an operator has looked", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const gate = path.join(service.targets, uuidv7());
  const programVersion = await writeGatedProgram(service.programs);
  const specificationId = await declare(client, { ...webService(environmentId), programVersion, parameters: { gate } });
  const runId = await plan(client, specificationId);
  const silent = service.execute(runId);
  await until("the apply", WAIT_MS, async () => {
    const started = { runId, address: "terraform_data.second", outcome: "INDETERMINATE" as const };
    return (await service.database.receiptEntry.findFirst({ where: started })) ?? undefined;
  });
  await service.loseExecutor(runId);
  expect(await service.state(runId)).toBe("INDETERMINATE");
  // The silent one notices at its next heartbeat, and stops its engine.
  await silent;
  expect(await service.state(runId)).toBe("INDETERMINATE");
  const announced = await service.announced(runId);
  expect(announced.at(-1)).toMatchObject({
    event: "ProvisioningFailed",
    data: { reason: expect.stringMatching(/^EXECUTOR_LOST: /) },
  });

  await writeFile(gate, "");
  const again = await plan(client, specificationId);
  await service.work();
  expect(await service.state(again)).toBe("QUEUED");
  await client.resolveIndeterminate({ provisioningRunId: runId, resolution: "nothing is left of it" });
  await service.work();
  expect(await service.state(again)).toBe("APPLIED");
});

test("hands a run over that it plans when it is told to stop", async () => {
  const environmentId = await service.environment("t1");
  const client = service.as("t1");
  const runId = await plan(client, await declare(client, webService(environmentId)));
  const gate = gatedEngine(service.context.engines.manifests);
  service.context.engines = { ...service.context.engines, manifests: gate.engine };
  const stopping = new AbortController();
  const stopped = service.execute(runId, stopping.signal);
  await gate.reached;
  stopping.abort(new Error("the worker is stopping"));
  gate.open();
  await expect(stopped).rejects.toThrow("the worker is stopping");
  expect(await service.state(runId)).toBe("QUEUED");
  await service.work();
  expect(await service.state(runId)).toBe("APPLIED");
});

test("fails a run of a program that changed after it was declared", async () => {
  const environmentId = await service.environment("t1", "PRODUCTION");
  const client = service.as("t1");
  const specificationId = await declare(client, webService(environmentId));
  const runId = await plan(client, specificationId);
  await service.work();
  const { planDigest } = await client.getPlan({ provisioningRunId: runId });
  await service.as("t1", "bob").approveProvisioning({ provisioningRunId: runId, planDigest });
  await writeFile(path.join(service.programs, "web-service/1.0.0/templates/extra.yaml"), "kind: Extra\n");
  await service.work();
  const { run } = await client.getProvisioningRun({ provisioningRunId: runId });
  expect(run?.reason).toMatch(
    /^SUPERSEDED: program web-service@1\.0\.0: its content has changed since it was declared/,
  );
});
