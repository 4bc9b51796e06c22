import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { until } from "@runtime-cloud/local-servers/until";
import { deployProvisioning, type ProvisioningDeployment } from "../_support/provisioning-deployment.ts";
import { type ProvisioningGate, startProvisioningGate } from "../_support/provisioning-gate.ts";
import { type ProvisioningRuns, runsOf } from "../_support/provisioning-runs.ts";

const START_MS = 120_000;
const TEST_MS = 300_000;
const WITHIN_MS = 120_000;
const CALL_MS = 60_000;

let deployment: ProvisioningDeployment;
let runs: ProvisioningRuns;
let gate: ProvisioningGate;

beforeAll(async () => {
  gate = await startProvisioningGate();
  deployment = await deployProvisioning({
    role: "all",
    variables: { CANCEL_GRACE_SECONDS: "20", SHUTDOWN_GRACE_SECONDS: "24" },
  });
  runs = runsOf(deployment);
}, START_MS);
afterAll(async () => {
  await deployment.close();
  await gate.close();
}, START_MS);

test(
  "a process that is told to stop interrupts its engines at once, and answers the call that it is in the middle of",
  async () => {
    const { operator, token } = deployment;
    const environmentId = await deployment.environment();
    gate.open();
    const asking = { environmentId, program: "asking", parameters: { address: gate.address, token } };
    await runs.reaches(await runs.plan(asking), "APPLIED");
    const halfway = await runs.plan(runs.steps(await deployment.environment(), "stopped"));
    await runs.worksOn(halfway, "terraform_data.second");
    gate.shut();
    let isAnswered = false;
    const looking = operator.inspectEnvironment({ environmentId }, { timeoutMs: CALL_MS });
    void looking.then(() => (isAnswered = true));
    await gate.reached();

    const ended = deployment.end(deployment.first, "SIGTERM");
    await until("the end of the apply", WITHIN_MS, async () => {
      return (await runs.history(halfway)).includes("completePartially") || undefined;
    });
    expect(isAnswered).toBe(false);
    expect((await runs.announced(halfway))?.reason).toMatch(/^INTERRUPTED: the executor was stopped/);

    gate.open();
    expect((await looking).specifications).toMatchObject([{ resources: [{ address: "terraform_data.only" }] }]);
    expect(await ended).toBe(0);
    await runs.nothingLives();
  },
  TEST_MS,
);
