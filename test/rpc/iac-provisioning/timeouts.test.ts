import { afterEach, expect, test } from "@jest/globals";
import { ResourceOutcome } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { EngineSignals } from "@runtime-cloud/iac-provisioning/engines/engine";
import { gatedEngine, haltingEngine } from "../../_support/gated-engine.ts";
import { declare, type IacService, plan, startIacProvisioning, webService } from "../../_support/iac-provisioning.ts";

/** Long enough for the first resource, also on a busy machine. */
const APPLY_SECONDS = "5";

let service: IacService;
afterEach(() => service.close());

/** How a run ends whose planning lasts until its engine is told to end. */
async function slowPlan(minds: keyof EngineSignals) {
  const { manifests } = service.context.engines;
  service.context.engines = { ...service.context.engines, manifests: gatedEngine(manifests, minds).engine };
  const client = service.as("t1");
  const runId = await plan(client, await declare(client, webService(await service.environment("t1"))));
  return service.execute(runId);
}

/** How a run ends whose apply comes to a halt until its engine is told to end. */
async function slowApply(minds: keyof EngineSignals) {
  const { manifests } = service.context.engines;
  service.context.engines = { ...service.context.engines, manifests: haltingEngine(manifests, minds).engine };
  const client = service.as("t1");
  const provisioningRunId = await plan(client, await declare(client, webService(await service.environment("t1"))));
  const result = await service.execute(provisioningRunId);
  const { entries } = await client.getReceipt({ provisioningRunId });
  return { ...result, outcomes: entries.map(({ outcome }) => ResourceOutcome[outcome]) };
}

test("fails a run whose planning takes too long", async () => {
  service = await startIacProvisioning({ PLAN_TIMEOUT_SECONDS: "1", CANCEL_GRACE_SECONDS: "30" });
  expect(await slowPlan("interrupt")).toMatchObject({
    state: "FAILED",
    reason: "TIMED_OUT: planning took longer than PLAN_TIMEOUT_SECONDS (1 s)",
  });
});

test("kills a planning engine that doesn't end within its grace", async () => {
  service = await startIacProvisioning({ PLAN_TIMEOUT_SECONDS: "1", CANCEL_GRACE_SECONDS: "1" });
  expect(await slowPlan("kill")).toMatchObject({
    state: "FAILED",
    reason: expect.stringMatching(/^TIMED_OUT: planning took longer than PLAN_TIMEOUT_SECONDS \(1 s\): .*killed/),
  });
});

test("interrupts an apply that takes too long, and says what was applied by then", async () => {
  service = await startIacProvisioning({ APPLY_TIMEOUT_SECONDS: APPLY_SECONDS, CANCEL_GRACE_SECONDS: "30" });
  expect(await slowApply("interrupt")).toMatchObject({
    state: "PARTIALLY_APPLIED",
    reason: `TIMED_OUT: the apply took longer than APPLY_TIMEOUT_SECONDS (${APPLY_SECONDS} s)`,
    outcomes: ["APPLIED", "NOT_ATTEMPTED", "NOT_ATTEMPTED", "NOT_ATTEMPTED"],
  });
});

test("kills an applying engine that doesn't end within its grace, and then says that nobody knows", async () => {
  service = await startIacProvisioning({ APPLY_TIMEOUT_SECONDS: APPLY_SECONDS, CANCEL_GRACE_SECONDS: "1" });
  expect(await slowApply("kill")).toMatchObject({
    state: "INDETERMINATE",
    reason: expect.stringMatching(/^TIMED_OUT: the apply took longer than APPLY_TIMEOUT_SECONDS \(\d+ s\): .*killed/),
    outcomes: expect.arrayContaining(["APPLIED", "NOT_ATTEMPTED"]),
  });
});
