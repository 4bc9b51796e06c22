import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { until } from "@runtime-cloud/local-servers/until";
import { engineAt } from "../_support/provisioning-children.ts";
import { deployProvisioning, type ProvisioningDeployment } from "../_support/provisioning-deployment.ts";
import { type ProvisioningGate, startProvisioningGate } from "../_support/provisioning-gate.ts";
import { type ProvisioningRuns, runsOf } from "../_support/provisioning-runs.ts";
import { secretsLeftIn } from "../_support/provisioning-secrets.ts";

const START_MS = 120_000;
const TEST_MS = 300_000;
const WITHIN_MS = 120_000;

let deployment: ProvisioningDeployment;
let runs: ProvisioningRuns;
let gate: ProvisioningGate;

beforeAll(async () => {
  gate = await startProvisioningGate();
  deployment = await deployProvisioning({ role: "all" });
  runs = runsOf(deployment);
}, START_MS);
afterAll(async () => {
  await deployment.close();
  await gate.close();
}, START_MS);

test(
  "an engine that is killed while it applies leaves an indeterminate run, and no child of its own",
  async () => {
    const environmentId = await deployment.environment();
    const killed = await runs.plan(runs.steps(environmentId, "killed"));
    await runs.worksOn(killed, "terraform_data.second");
    const engine = engineAt(deployment.folders.work, "apply");
    process.kill(engine?.pid ?? NaN, "SIGKILL");

    const { reason } = await runs.reaches(killed, "INDETERMINATE");
    expect(reason).toMatch(/^KILLED: /);
    expect(await runs.announced(killed)).toEqual({ event: "ProvisioningFailed", reason });
    await runs.nothingLives();
    expect(await runs.receipt(killed)).toEqual({
      "terraform_data.first": "APPLIED",
      "terraform_data.second": "INDETERMINATE",
      "terraform_data.third": "NOT_ATTEMPTED",
    });
    await resolvedGoesOn(killed, environmentId, () => runs.open("killed"));
  },
  TEST_MS,
);

test(
  "an engine and its child that ignore a cancel are ended by an operator's force, once their grace is over",
  async () => {
    gate.shut();
    const environmentId = await deployment.environment();
    const { token, folders, operator } = deployment;
    const stubborn = await runs.plan({
      environmentId,
      program: "stubborn",
      parameters: { address: gate.address, signals: folders.signals, token },
    });
    await gate.reached();
    await until("the child", WITHIN_MS, async () => (await begun()).includes("stubborn") || undefined);

    const { run } = await operator.cancelProvisioning({ provisioningRunId: stubborn, reason: "not today" });
    expect(run?.state).toBe(RunState.CANCELLING);
    await until("the engine to hear of it", WITHIN_MS, async () => (await logOf(stubborn, "%nterrupt%")) || undefined);
    expect(engineAt(folders.work, "apply")).toBeDefined();
    await until("the end of the grace", WITHIN_MS, () =>
      operator.cancelProvisioning({ provisioningRunId: stubborn, force: true }).catch(() => undefined),
    );

    const { reason } = await runs.reaches(stubborn, "INDETERMINATE");
    expect(reason).toMatch(/^KILLED: /);
    await runs.nothingLives();
    expect(await runs.receipt(stubborn)).toMatchObject({
      "terraform_data.first": "APPLIED",
      "terraform_data.second": "NOT_ATTEMPTED",
    });
    await resolvedGoesOn(stubborn, environmentId, () => Promise.resolve(gate.open()));
  },
  TEST_MS,
);

/** The environment is blocked until an operator has looked, and free after that. */
async function resolvedGoesOn(runId: string, environmentId: string, prepare: () => Promise<void>): Promise<void> {
  const next = await runs.planAgain(runId);
  expect(await runs.state(next)).toBe("QUEUED");
  await prepare();
  await deployment.operator.resolveIndeterminate({ provisioningRunId: runId, resolution: "looked" });
  await runs.reaches(next, "APPLIED");
  expect(await runs.locks(environmentId)).toBe(0);
  await runs.nothingLives();
}

test("leaves no secret in its tables, its queues, its log and its work directory", async () => {
  expect(await secretsLeftIn(deployment, { token: deployment.token })).toEqual([]);
});

function begun(): Promise<string> {
  return readFile(join(deployment.folders.signals, "begun"), "utf8").catch(() => "");
}

async function logOf(runId: string, like: string): Promise<boolean> {
  const { rowCount } = await deployment.database.query("SELECT FROM run_log_line WHERE run_id = $1 AND text LIKE $2", [
    runId,
    like,
  ]);
  return rowCount !== 0;
}
