import { createHash } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { JsonObject } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { Redis } from "ioredis";
import { fromSetUp } from "../_support/environment.ts";
import { engineAt, engineChildren } from "../_support/provisioning-children.ts";
import { deployProvisioning, type ProvisioningDeployment } from "../_support/provisioning-deployment.ts";
import { type ProvisioningRuns, runsOf } from "../_support/provisioning-runs.ts";
import {
  awkwardSecret,
  plainSecret,
  secretHunt,
  type Secrets,
  secretsLeftIn,
} from "../_support/provisioning-secrets.ts";

const START_MS = 120_000;
const TEST_MS = 300_000;

let deployment: ProvisioningDeployment;
let runs: ProvisioningRuns;
/** Every run that was played. */
const played: string[] = [];
/** What the calls answered. */
const answers: string[] = [];

const password = awkwardSecret("password");
const user = plainSecret("user");
const key = awkwardSecret("key");
const privateKey = [
  "-----BEGIN TEST KEY-----",
  ...Array.from({ length: 3 }, () => plainSecret("line")),
  "-----END TEST KEY-----",
];
const confidential = {
  password,
  credentials: { user, keys: [{ name: "first", value: key }] },
  private_key: privateKey.join("\n"),
};

beforeAll(async () => {
  deployment = await deployProvisioning({ role: "all", variables: { LOG_LEVEL: "trace" } });
  runs = runsOf(deployment);
}, START_MS);
afterAll(() => deployment.close(), START_MS);

test("finds a secret that is planted, wherever it is and however it is spelled", async () => {
  const { database, folders } = deployment;
  const planted = awkwardSecret("planted");
  const base64 = Buffer.from(planted).toString("base64");
  const environmentId = await deployment.environment();
  await database.query("UPDATE environment SET project_id = $2 WHERE id = $1", [environmentId, planted]);
  await database.query(PLANT_BYTES, [environmentId, Buffer.from(`bytes around ${planted} and behind`)]);
  await database.query(PLANT_JSON, [JSON.stringify({ data: { outputs: [{ text: `a ${planted} b` }] } })]);
  const redis = new Redis(fromSetUp("TEST_REDIS_URL"));
  const redisKey = `${deployment.backend.prefix}:planted`;
  await redis.hset(redisKey, "data", JSON.stringify({ text: base64 }));
  const file = join(folders.work, "planted.tfvars.json");
  await writeFile(file, JSON.stringify({ password: planted }));

  const hunt = secretHunt({ planted });
  hunt.text("a log", `{"msg":${JSON.stringify(JSON.stringify({ password: planted }))}}`);
  hunt.text("another log", "with nothing in it");
  await hunt.tables(database);
  await hunt.keys(fromSetUp("TEST_REDIS_URL"));
  await hunt.files(folders.work);
  expect(hunt.found()).toEqual(
    [
      "planted (JSON in JSON) in a log",
      "planted (clear) in public.environment.project_id",
      "planted (clear) in public.published_program.archive",
      "planted (clear) in public.outbox_message.envelope",
      `planted (base64) in Redis ${redisKey}`,
      `planted (JSON) in ${file}`,
    ].sort(),
  );

  await database.query("DELETE FROM environment WHERE id = $1", [environmentId]);
  await database.query("DELETE FROM published_program");
  await database.query("DELETE FROM outbox_message WHERE topic = 'planted'");
  await redis.del(redisKey);
  await redis.quit();
  await rm(file);
});

test(
  "shows no secret of a run that ends well, that fails while it plans or applies, or that nobody knows the end of",
  async () => {
    const environmentId = await deployment.environment();
    const applied = await play(environmentId, confidential);
    await runs.reaches(applied, "APPLIED");
    const again = await play(environmentId, { ...confidential, revision: 2, failure: "provisioner" });
    const { reason: partial } = await runs.reaches(again, "PARTIALLY_APPLIED");
    expect(partial).toMatch(/^ENGINE_ERROR: .*terraform_data\.refused/);
    expect(partial).toContain("(sensitive");
    const refused = await play(await deployment.environment(), { ...confidential, failure: "precondition" });
    const { reason } = await runs.reaches(refused, "FAILED");
    expect(reason).toMatch(/The password \(sensitive.*\) was refused/);
    const rendered = await play(await deployment.environment(), { password }, "rendered");
    await runs.reaches(rendered, "APPLIED");
    await refuseParameters(environmentId);
    const commandLines = await playIndeterminate();

    await askEverything(environmentId);
    const secrets = await allSecrets(applied);
    const hunt = secretHunt(secrets);
    hunt.text("a command line", commandLines);
    for (const answer of answers) hunt.text("an answer", answer);
    expect(hunt.found()).toEqual([]);
    expect(await secretsLeftIn(deployment, secrets)).toEqual([]);
    // All of it was there to be seen: the log has what the provisioner printed, but for the secret itself.
    const { rowCount } = await deployment.database.query(
      "SELECT FROM run_log_line WHERE text LIKE '%logging in with (sensitive%'",
    );
    expect(rowCount).toBeGreaterThan(0);
  },
  TEST_MS,
);

async function play(environmentId: string, parameters: JsonObject, program = "confidential"): Promise<string> {
  const runId = await runs.plan({ environmentId, program, parameters });
  played.push(runId);
  return runId;
}

/** A run whose engine is killed; returns what the processes' command lines showed meanwhile. */
async function playIndeterminate(): Promise<string> {
  const runId = await runs.plan(runs.steps(await deployment.environment(), "canary"));
  played.push(runId);
  await runs.worksOn(runId, "terraform_data.second");
  const { work } = deployment.folders;
  const commandLines = engineChildren(work).map(({ command }) => command.join(" "));
  process.kill(engineAt(work, "apply")?.pid ?? NaN, "SIGKILL");
  await runs.reaches(runId, "INDETERMINATE");
  await runs.nothingLives();
  return commandLines.join("\n");
}

/** Secrets in the wrong places of a request. */
async function refuseParameters(environmentId: string): Promise<void> {
  for (const parameters of [
    { ...confidential, password: { nested: password } },
    { ...confidential, private_key: [privateKey.join("\n")] },
    { ...confidential, credentials: { user, keys: key } },
  ]) {
    const refused = await runs.plan({ environmentId, program: "confidential", parameters }).then(
      async (runId) => (await runs.reaches(runId, "FAILED")).reason ?? "",
      (error: unknown) => ConnectError.from(error).message,
    );
    answers.push(refused);
  }
}

async function askEverything(environmentId: string): Promise<void> {
  const { operator } = deployment;
  const calls: Promise<unknown>[] = [
    operator.listSpecifications({}),
    operator.listProvisioningRuns({}),
    operator.listPrograms({}),
    operator.inspectEnvironment({ environmentId }),
  ];
  for (const provisioningRunId of played) {
    calls.push(
      operator.getProvisioningRun({ provisioningRunId }),
      operator.getPlan({ provisioningRunId }),
      operator.getReceipt({ provisioningRunId }),
      operator.getRecoveryManifest({ provisioningRunId }),
      all(operator.tailProvisioningLog({ provisioningRunId })),
      firstOf((options) => operator.watchProvisioningRun({ provisioningRunId }, options)),
    );
  }
  for (const call of await Promise.allSettled(calls)) {
    const answer: unknown = call.status === "fulfilled" ? call.value : ConnectError.from(call.reason).message;
    answers.push(JSON.stringify(answer, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value)));
  }
  expect(answers.join("").length).toBeGreaterThan(10_000);
}

/** A watch of a run that waits for somebody goes on. */
async function firstOf<T>(watch: (options: { signal: AbortSignal }) => AsyncIterable<T>): Promise<T | undefined> {
  const leave = new AbortController();
  for await (const message of watch({ signal: leave.signal })) {
    leave.abort();
    return message;
  }
  return undefined;
}

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const messages: T[] = [];
  for await (const message of stream) messages.push(message);
  return messages;
}

/** Those that were given, and one that the program made while it was applied. */
async function allSecrets(applied: string): Promise<Secrets> {
  const { entries } = await deployment.operator.getReceipt({ provisioningRunId: applied });
  const id = entries.find(({ address }) => address === "terraform_data.sensitive")?.resourceId ?? "";
  expect(id).not.toBe("");
  const lines = Object.fromEntries(
    privateKey.slice(1, -1).map((line, index) => [`private key's line ${index + 1}`, line]),
  );
  return {
    ...{ password, user, key, token: deployment.token },
    ...lines,
    generated: createHash("sha256").update(id).digest("hex"),
  };
}

const PLANT_BYTES = `
  INSERT INTO published_program (tenant_id, name, version, digest, archive, published_by, published_at)
  VALUES ($1, 'planted', '1.0.0', '', $2, '', now())`;

const PLANT_JSON = `
  INSERT INTO outbox_message (id, topic, tenant_id, subject, envelope, published_at)
  VALUES (gen_random_uuid(), 'planted', '', '', $1, now())`;
