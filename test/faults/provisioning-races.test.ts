import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { RUN_QUEUE } from "@runtime-cloud/iac-provisioning/runs/run-queue";
import { until } from "@runtime-cloud/local-servers/until";
import { deployProvisioning, type ProvisioningDeployment } from "../_support/provisioning-deployment.ts";
import { type ProvisioningRuns, runsOf } from "../_support/provisioning-runs.ts";
import { secretsLeftIn } from "../_support/provisioning-secrets.ts";

const START_MS = 120_000;
const TEST_MS = 300_000;
const WITHIN_MS = 120_000;
/** As many jobs as two executors work on at once. */
const SLOTS = 4;
/** More than one executor works on. */
const BOTH = 3;

let deployment: ProvisioningDeployment;
let runs: ProvisioningRuns;

beforeAll(async () => {
  deployment = await deployProvisioning({ role: "api" });
  runs = runsOf(deployment);
  await Promise.all([deployment.start("executor"), deployment.start("executor")]);
}, START_MS);
afterAll(() => deployment.close(), START_MS);

test(
  "two executors that begin the same approved run at the same time apply it once",
  async () => {
    const environmentId = await deployment.environment("PRODUCTION");
    const raced = await runs.plan(runs.steps(environmentId, "raced"));
    await runs.reaches(raced, "AWAITING_APPROVAL");
    const startTogether = await heldAtTheStart(environmentId);
    await runs.approve(raced);
    await tellAll(raced);
    await startTogether();

    await runs.worksOn(raced, "terraform_data.second");
    await runs.open("raced");
    await runs.reaches(raced, "APPLIED");
    await quiet();
    expect(await runs.history(raced)).toEqual(["create", "start", "plan", "approve", "startApply", "complete"]);
    expect(await begun("raced")).toBe(1);
    expect(Object.values(await runs.receipt(raced))).toEqual(["APPLIED", "APPLIED", "APPLIED"]);
    expect(await runs.locks(environmentId)).toBe(0);
    await runs.nothingLives();
  },
  TEST_MS,
);

test(
  "of two runs of one environment one works at a time, whatever the executors are told",
  async () => {
    const environmentId = await deployment.environment();
    const asked = await Promise.all([
      runs.plan(runs.steps(environmentId, "one", { kind: "BASELINE" })),
      runs.plan(runs.steps(environmentId, "other")),
    ]);
    await Promise.all(asked.map(tellAll));
    const first = await until("a run to apply", WITHIN_MS, async () => {
      for (const runId of asked) if ((await runs.state(runId)) === "APPLYING") return runId;
      return undefined;
    });
    await runs.worksOn(first, "terraform_data.second");
    const [second = ""] = asked.filter((runId) => runId !== first);
    await tellAll(second);
    await quiet(1);
    expect(await runs.state(second)).toBe("QUEUED");

    await Promise.all([runs.open("one"), runs.open("other")]);
    await runs.reaches(first, "APPLIED");
    await runs.reaches(second, "APPLIED");
    for (const runId of asked) {
      expect(await runs.history(runId)).toEqual(["create", "start", "plan", "startApply", "complete"]);
    }
    expect([await begun("one"), await begun("other")]).toEqual([1, 1]);
    expect(await runs.locks(environmentId)).toBe(0);
    await runs.nothingLives();
  },
  TEST_MS,
);

test("leaves no secret in its tables, its queues, its log and its work directory", async () => {
  expect(await secretsLeftIn(deployment, { token: deployment.token })).toEqual([]);
});

/**
 * Holds the environment's row, which whoever starts anything there locks first. The answer lets go of it once both
 * executors wait for it.
 */
async function heldAtTheStart(environmentId: string): Promise<() => Promise<void>> {
  const holder = await deployment.database.connect();
  await holder.query("BEGIN");
  await holder.query("SELECT FROM environment WHERE id = $1 FOR UPDATE", [environmentId]);
  return async () => {
    await until("both to wait for the environment", WITHIN_MS, async () => {
      const { rows } = await deployment.database.query<{ count: number }>(WAITING);
      return (rows[0]?.count ?? 0) >= BOTH || undefined;
    });
    await holder.query("ROLLBACK");
    holder.release();
  };
}

/** Tells every slot of both executors of a run, past the queue's own deduplication. */
function tellAll(runId: string): Promise<void> {
  const jobs = Array.from({ length: SLOTS }, () => ({ name: runId, data: { runId } }));
  return deployment.backend.add(RUN_QUEUE, jobs);
}

/** Resolves when the executors have looked at all that they were told, but for `working` jobs. */
async function quiet(working = 0): Promise<void> {
  const queue = deployment.backend.queue(RUN_QUEUE);
  await until("idle executors", WITHIN_MS, async () => {
    return (await queue.getJobCountByTypes("waiting", "active", "prioritized")) <= working || undefined;
  });
}

/** How often the step with this gate was begun. */
async function begun(gate: string): Promise<number> {
  const lines = await readFile(join(deployment.folders.signals, "begun"), "utf8");
  return lines.split("\n").filter((line) => line === gate).length;
}

const WAITING = `
  SELECT count(*)::int AS count FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock'`;
