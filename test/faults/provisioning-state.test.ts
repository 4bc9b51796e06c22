import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { postgresStateStore } from "@runtime-cloud/iac-provisioning/state/postgres-state-store";
import { parseEncryptionKeys, secretBox } from "@runtime-cloud/iac-provisioning/state/secret-box";
import { formatStateKey } from "@runtime-cloud/iac-provisioning/state/state-key";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { z } from "zod";
import { deployProvisioning, type ProvisioningDeployment } from "../_support/provisioning-deployment.ts";
import { type ProvisioningRuns, runsOf } from "../_support/provisioning-runs.ts";
import { secretsLeftIn } from "../_support/provisioning-secrets.ts";

const START_MS = 120_000;
const TEST_MS = 300_000;
const ADDRESSES = ["terraform_data.first", "terraform_data.second", "terraform_data.third"];

let deployment: ProvisioningDeployment;
let runs: ProvisioningRuns;

beforeAll(async () => {
  deployment = await deployProvisioning({ role: "all" });
  runs = runsOf(deployment);
}, START_MS);
afterAll(() => deployment.close(), START_MS);

test(
  "a state that its backend refuses to write is kept, and an operator may make it the recorded one",
  async () => {
    const { database, operator } = deployment;
    const environmentId = await deployment.environment();
    await database.query(refuseWrites(environmentId));
    await runs.open("refused");
    const refused = await runs.plan(runs.steps(environmentId, "refused"));

    const { reason } = await runs.reaches(refused, "INDETERMINATE");
    expect(reason).toMatch(/^STATE_PERSIST_FAILED: .*salvaged/);
    expect(await runs.announced(refused)).toEqual({ event: "ProvisioningFailed", reason });
    await runs.nothingLives();
    expect(await runs.receipt(refused)).toEqual(Object.fromEntries(ADDRESSES.map((address) => [address, "APPLIED"])));
    await database.query(ACCEPT_WRITES);
    const manifest = await operator.getRecoveryManifest({ provisioningRunId: refused });
    expect(manifest.recordedSerial).toBeUndefined();
    expect(manifest.salvagedState?.additionalAddresses).toEqual(ADDRESSES);

    const next = await runs.planAgain(refused);
    expect(await runs.state(next)).toBe("QUEUED");
    await operator.resolveIndeterminate({
      provisioningRunId: refused,
      resolution: "what was kept is right",
      adoptSalvagedState: true,
    });
    // Nothing is left to do: all that was made is on record.
    const { outputs } = await runs.reaches(next, "APPLIED");
    expect(outputs).toEqual({ steps: 3 });
    expect(await runs.receipt(next)).toEqual({});
    expect(await runs.locks(environmentId)).toBe(0);
  },
  TEST_MS,
);

test(
  "a plan is not applied when somebody has written the state since it was made",
  async () => {
    const environmentId = await deployment.environment("PRODUCTION");
    await runs.open("moved");
    const first = await runs.plan(runs.steps(environmentId, "moved"));
    await runs.reaches(first, "AWAITING_APPROVAL");
    await runs.approve(first);
    await runs.reaches(first, "APPLIED");

    const stale = await runs.plan(runs.steps(environmentId, "moved", { revision: 2 }));
    await runs.reaches(stale, "AWAITING_APPROVAL");
    const { from, to } = await moveState(environmentId);
    await runs.approve(stale);
    const { reason } = await runs.reaches(stale, "SUPERSEDED");
    expect(reason).toBe(
      `SUPERSEDED: it was made from serial ${from} of the engine's state, which is now at serial ${to}`,
    );
    expect(await runs.announced(stale)).toEqual({ event: "ProvisioningFailed", reason });
    await expect(runs.receipt(stale)).rejects.toThrow("it applied nothing");

    const next = await runs.planAgain(stale);
    await runs.reaches(next, "AWAITING_APPROVAL");
    await runs.approve(next);
    await runs.reaches(next, "APPLIED");
    expect(await runs.locks(environmentId)).toBe(0);
  },
  TEST_MS,
);

test("leaves no secret in its tables, its queues, its log and its work directory", async () => {
  expect(await secretsLeftIn(deployment, { token: deployment.token })).toEqual([]);
});

/** Writes the same resources as the next version of the state, as a person with an engine at hand would. */
async function moveState(environmentId: string): Promise<{ from: number; to: number }> {
  const { database, tenantId, encryptionKeys } = deployment;
  const key = { tenantId, environmentId, kind: "RELEASE" };
  const box = secretBox(parseEncryptionKeys(encryptionKeys));
  const store = postgresStateStore(database);
  const current = await store.read(key);
  if (!current) throw new Error("there is no state");
  const { lineage, serial: from } = current;
  const to = from + 1;
  const context = (serial: number) => `${formatStateKey(key)} ${lineage} ${serial}`;
  const opened = box.open(current.sealed, "engine-state", context(from)).toString("utf8");
  const moved = Buffer.from(JSON.stringify({ ...z.looseObject({}).parse(JSON.parse(opened)), serial: to }));

  const claim = { id: uuidv7(), runId: uuidv7(), epoch: 1 };
  await store.lock(key, { ...claim, info: "{}" });
  const version = { lineage, serial: to, digest: current.digest, sealed: box.seal(moved, "engine-state", context(to)) };
  expect(await store.write(key, version, claim)).toBe("written");
  await store.unlock(key, claim);
  return { from, to };
}

function refuseWrites(environmentId: string): string {
  return `
    CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'no room for a state'; END $$;
    CREATE TRIGGER no_room BEFORE INSERT ON engine_state_version FOR EACH ROW
    WHEN (NEW.environment_id = '${environmentId}') EXECUTE FUNCTION no_room()`;
}

const ACCEPT_WRITES = "DROP TRIGGER no_room ON engine_state_version; DROP FUNCTION no_room";
