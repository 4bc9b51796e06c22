import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { RecoveryProblem } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import { until } from "@runtime-cloud/local-servers/until";
import { deployProvisioning, type ProvisioningDeployment } from "../_support/provisioning-deployment.ts";
import { type ProvisioningGate, startProvisioningGate } from "../_support/provisioning-gate.ts";
import type { ProvisioningProcess } from "../_support/provisioning-process.ts";
import { type ProvisioningRuns, runsOf } from "../_support/provisioning-runs.ts";
import { secretsLeftIn } from "../_support/provisioning-secrets.ts";

const START_MS = 120_000;
const TEST_MS = 300_000;
const WITHIN_MS = 120_000;

let deployment: ProvisioningDeployment;
let runs: ProvisioningRuns;
let gate: ProvisioningGate;
let executors: ProvisioningProcess[] = [];

beforeAll(async () => {
  gate = await startProvisioningGate();
  deployment = await deployProvisioning({
    role: "api",
    variables: { EXECUTOR_LEASE_SECONDS: "4", CANCEL_GRACE_SECONDS: "10", SHUTDOWN_GRACE_SECONDS: "20" },
  });
  runs = runsOf(deployment);
}, START_MS);
afterEach(async () => {
  await Promise.all(executors.map((executor) => deployment.end(executor, "SIGTERM")));
  executors = [];
}, START_MS);
afterAll(async () => {
  await deployment.close();
  await gate.close();
}, START_MS);

test(
  "an executor that is killed leaves nothing alive, the run it planned goes on elsewhere, the one it applied is blocked",
  async () => {
    const executor = await startExecutor();
    const { asked, halfway } = await underWay("killed");
    await end(executor, "SIGKILL");
    // What a plan reads has to answer before the engine looks at the interrupt.
    gate.open();
    await runs.nothingLives();

    const { reason, environmentId } = await runs.reaches(halfway, "INDETERMINATE");
    expect(reason).toMatch(/^EXECUTOR_LOST: /);
    expect(await runs.announced(halfway)).toEqual({ event: "ProvisioningFailed", reason });
    expect(await runs.receipt(halfway)).toEqual({
      "terraform_data.first": "APPLIED",
      "terraform_data.second": "INDETERMINATE",
      "terraform_data.third": "NOT_ATTEMPTED",
    });

    await startExecutor();
    const next = await runs.planAgain(halfway);
    const { entries, recordedSerial, salvagedState } = await salvaged(halfway);
    expect(entries.map(({ address, problem }) => [address, RecoveryProblem[problem]])).toEqual([
      ["terraform_data.first", "CREATED_NOT_RECORDED"],
      ["terraform_data.second", "RESULT_UNKNOWN"],
    ]);
    expect(entries[0]?.resourceId).toMatch(/./);
    expect(recordedSerial).toBeUndefined();
    expect(salvagedState?.additionalAddresses).toEqual(["terraform_data.first", "terraform_data.second"]);
    await runs.reaches(asked, "APPLIED");
    expect(await runs.history(asked)).toEqual([
      ...["create", "start", "loseExecutor"],
      ...["start", "plan", "startApply", "complete"],
    ]);
    expect(await runs.state(next)).toBe("QUEUED");
    await runs.open("killed");
    await deployment.operator.resolveIndeterminate({
      provisioningRunId: halfway,
      resolution: "what was found is right",
      adoptSalvagedState: true,
    });
    await runs.reaches(next, "APPLIED");
    // The first one is on record now; the second one was interrupted, so it is made anew.
    expect(await runs.receipt(next)).toEqual({
      "terraform_data.first": "NO_OP",
      "terraform_data.second": "APPLIED",
      "terraform_data.third": "APPLIED",
    });
    expect(await runs.locks(environmentId)).toBe(0);
  },
  TEST_MS,
);

test(
  "an executor that is told to stop hands on the run it plans, and interrupts the one it applies",
  async () => {
    const executor = await startExecutor();
    const { asked, halfway } = await underWay("stopped");
    await startExecutor();
    const ended = end(executor, "SIGTERM");
    await until("the interrupt", WITHIN_MS, () => executor.said().includes("stopping") || undefined);
    gate.open();
    expect(await ended).toBe(0);

    const { reason, environmentId } = await runs.reaches(halfway, "PARTIALLY_APPLIED");
    expect(reason).toMatch(/^INTERRUPTED: /);
    expect(await runs.receipt(halfway)).toEqual({
      "terraform_data.first": "APPLIED",
      "terraform_data.second": "FAILED",
      "terraform_data.third": "NOT_ATTEMPTED",
    });
    expect(await runs.locks(environmentId)).toBe(0);
    await runs.reaches(asked, "APPLIED");
    expect(await runs.history(asked)).toEqual([
      ...["create", "start", "loseExecutor"],
      ...["start", "plan", "startApply", "complete"],
    ]);
    await runs.nothingLives();

    await runs.open("stopped");
    await runs.reaches(await runs.planAgain(halfway), "APPLIED");
  },
  TEST_MS,
);

test("leaves no secret in its tables, its queues, its log and its work directory", async () => {
  expect(await secretsLeftIn(deployment, { token: deployment.token })).toEqual([]);
});

/** Two runs of one executor: one that it plans until the gate answers, one whose second step it applies. */
async function underWay(name: string): Promise<{ asked: string; halfway: string }> {
  gate.shut();
  const asked = await runs.plan({
    environmentId: await deployment.environment(),
    program: "asking",
    parameters: { address: gate.address, token: deployment.token },
  });
  const halfway = await runs.plan(runs.steps(await deployment.environment(), name));
  await Promise.all([gate.reached(), runs.worksOn(halfway, "terraform_data.second")]);
  return { asked, halfway };
}

/** What is to be recovered once the state that the engine could not send has been found where it worked. */
async function salvaged(provisioningRunId: string) {
  return until("the salvaged state", WITHIN_MS, async () => {
    const manifest = await deployment.operator.getRecoveryManifest({ provisioningRunId });
    return manifest.salvagedState && manifest;
  });
}

async function startExecutor(): Promise<ProvisioningProcess> {
  const executor = await deployment.start("executor");
  executors.push(executor);
  return executor;
}

function end(executor: ProvisioningProcess, signal: NodeJS.Signals): Promise<number | null> {
  executors = executors.filter((other) => other !== executor);
  return deployment.end(executor, signal);
}
