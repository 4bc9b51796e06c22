import { execFileSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import { open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { hasCode } from "@runtime-cloud/iac-provisioning/system-error";
import { type ProvisioningDeployment, deployProvisioning } from "../_support/provisioning-deployment.ts";
import type { ProvisioningProcess } from "../_support/provisioning-process.ts";
import { type ProvisioningRuns, runsOf } from "../_support/provisioning-runs.ts";
import { secretsLeftIn } from "../_support/provisioning-secrets.ts";

const START_MS = 120_000;
const TEST_MS = 300_000;
const MEGABYTE = 1024 * 1024;
const DISK_BYTES = 8 * MEGABYTE;
const FLOOD_BYTES = 100 * MEGABYTE;
/** What the service may take beside what it had: much less than what is printed. */
const MAX_GROWTH_BYTES = 250 * MEGABYTE;
const MAX_LOG_BYTES = 20 * MEGABYTE;
const LINE_LENGTH = 1_000;
const ENGINE = "flooding-terraform";
const CHUNK = Buffer.alloc(64 * 1024);

/** Only root may mount, and not everywhere. */
const mayMount = canMount();

let deployment: ProvisioningDeployment;
let service: ProvisioningProcess;
let runs: ProvisioningRuns;

beforeAll(async () => {
  deployment = await deployProvisioning({
    role: "api",
    prepare: async ({ work, signals }) => {
      if (mayMount) mount(work);
      await writeFile(join(signals, ENGINE), floodingEngine(signals), { mode: 0o755 });
    },
  });
  service = await deployment.start("executor", { IAC_ENGINE_BIN: join(deployment.folders.signals, ENGINE) });
  runs = runsOf(deployment);
}, START_MS);
afterAll(async () => {
  await deployment.end(service, "SIGTERM");
  if (mayMount) execFileSync("umount", [deployment.folders.work]);
  await deployment.close();
}, START_MS);

(mayMount ? test : test.skip)(
  "a run whose work directory is full fails with that reason, and the next one goes on when there is room",
  async () => {
    const environmentId = await deployment.environment("PRODUCTION");
    await runs.open("full");
    await fillDisk();
    const planned = await runs.plan(runs.steps(environmentId, "full"));
    const failed = await runs.reaches(planned, "FAILED");
    expect(failed.reason).toMatch(/^WORK_DIRECTORY_FULL: /);
    expect(await runs.announced(planned)).toEqual({ event: "ProvisioningFailed", reason: failed.reason });

    await emptyDisk();
    const applied = await runs.planAgain(planned);
    await runs.reaches(applied, "AWAITING_APPROVAL");
    await fillDisk();
    await runs.approve(applied);
    const { reason } = await runs.reaches(applied, "FAILED");
    expect(reason).toMatch(/^WORK_DIRECTORY_FULL: /);
    expect(await runs.announced(applied)).toEqual({ event: "ProvisioningFailed", reason });
    expect(Object.values(await runs.receipt(applied))).toEqual(["NOT_ATTEMPTED", "NOT_ATTEMPTED", "NOT_ATTEMPTED"]);

    await emptyDisk();
    const next = await runs.planAgain(applied);
    await runs.reaches(next, "AWAITING_APPROVAL");
    await runs.approve(next);
    await runs.reaches(next, "APPLIED");
    expect(await runs.locks(environmentId)).toBe(0);
    await runs.nothingLives();
  },
  TEST_MS,
);

test(
  "an engine that prints 100 MB floods neither the log nor the service's memory",
  async () => {
    const environmentId = await deployment.environment();
    await Promise.all([runs.open("flood"), runs.open("flooding")]);
    const before = service.peakMemory();
    const flooding = await runs.plan(runs.steps(environmentId, "flooding"));
    await runs.reaches(flooding, "APPLIED");
    expect(service.peakMemory() - before).toBeLessThan(MAX_GROWTH_BYTES);
    expect(Object.values(await runs.receipt(flooding))).toEqual(["APPLIED", "APPLIED", "APPLIED"]);
    const { rows } = await deployment.database.query<{ bytes: number; cuts: number; end: boolean }>(LOG, [flooding]);
    const [log] = rows;
    expect(log?.bytes).toBeGreaterThan(MEGABYTE);
    expect(log?.bytes).toBeLessThan(MAX_LOG_BYTES);
    // It says where it is cut, and still has what came after the flood.
    expect(log).toMatchObject({ cuts: 1, end: true });
    await runs.nothingLives();
  },
  TEST_MS,
);

test("leaves no secret in its tables, its queues, its log and its work directory", async () => {
  expect(await secretsLeftIn(deployment, { token: deployment.token })).toEqual([]);
});

async function fillDisk(): Promise<void> {
  const file = await open(filler(), "w");
  try {
    for (;;) await file.write(CHUNK);
  } catch (error) {
    if (!hasCode(error, "ENOSPC")) throw error;
  } finally {
    await file.close();
  }
}

function emptyDisk(): Promise<void> {
  return rm(filler());
}

function filler(): string {
  return join(deployment.folders.work, "filler");
}

/**
 * The real engine, which says much before it applies while the file `flood` is there: what a provisioner prints, as
 * the engine passes it on, and many times faster.
 */
function floodingEngine(signals: string): string {
  const output = "x".repeat(LINE_LENGTH);
  const line = JSON.stringify({
    "@level": "info",
    "@message": `terraform_data.second: (local-exec): ${output}`,
    "@module": "terraform.ui",
    "@timestamp": "2026-01-01T00:00:00.000000Z",
    hook: { resource: { addr: "terraform_data.second" }, provisioner: "local-exec", output },
    type: "provision_progress",
  });
  return `#!/bin/sh
if [ "$1" = apply ] && [ -e '${signals}/flood' ]; then yes '${line}' | head -c ${FLOOD_BYTES}; echo; fi
exec terraform "$@"
`;
}

function mount(directory: string): void {
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES},mode=755`, "tmpfs", directory], { stdio: "ignore" });
}

function canMount(): boolean {
  const directory = mkdtempSync(join(tmpdir(), "mount-"));
  try {
    mount(directory);
    execFileSync("umount", [directory]);
    return true;
  } catch {
    return false;
  } finally {
    rmdirSync(directory);
  }
}

const LOG = `
  SELECT sum(octet_length(text))::int AS bytes, count(*) FILTER (WHERE text LIKE '%log is cut here%')::int AS cuts,
    bool_or(text LIKE '%terraform_data.third: Creation complete%') AS end
  FROM run_log_line WHERE run_id = $1`;
