import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "@jest/globals";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { inboxJob } from "@runtime-cloud/eventing/inbox-job";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { startService } from "@runtime-cloud/eventing/start-service";
import { iacProvisioning } from "@runtime-cloud/iac-provisioning/definition";
import { settings } from "@runtime-cloud/iac-provisioning/settings";
import { until } from "@runtime-cloud/local-servers/until";
import { ConfigError, readConfig } from "@runtime-cloud/service-kit/config";
import { openDatabase } from "@runtime-cloud/service-kit/database";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { PrismaClient } from "../../../services/iac-provisioning/generated/prisma/client.ts";
import { testDatabase } from "../../_support/database.ts";
import { environmentCreated } from "../../_support/iac-provisioning.ts";
import { testRedis } from "../../_support/redis.ts";

const logger = silentLogger();
const STATE_ENCRYPTION_KEYS = `test:${randomBytes(32).toString("base64")}`;

test("takes an event from its inbox and brings the run to its end by its own queue", async () => {
  const { url, drop } = await testDatabase("iac-provisioning");
  const redis = testRedis();
  const folder = await mkdtemp(path.join(tmpdir(), "iac-service-"));
  const config = readConfig(settings, {
    DATABASE_URL: url,
    REDIS_URL: redis.url,
    SUBSCRIBERS: "IaCProvisioningService",
    QUEUE_PREFIX: redis.prefix,
    PORT: "0",
    ADMIN_PORT: "0",
    TARGETS_DIR: path.join(folder, "targets"),
    WORK_DIR: path.join(folder, "work"),
    LOCAL_ISSUER_FILE: path.join(folder, "issuer.json"),
    BASELINE_PROGRAM: "environment-baseline-manifests@1.0.0",
    STATE_ENCRYPTION_KEYS,
  });
  const running = await startService(iacProvisioning, config, logger);
  const database = openDatabase(
    { url, applicationName: "test", onError: () => undefined },
    (adapter) => new PrismaClient({ adapter }),
  );
  const backend = redisBackend({ ...redis, logger });

  const event = environmentCreated("t1", EnvironmentClass.STAGING);
  await backend.add(inboxOf("IaCProvisioningService"), [inboxJob(event)]);
  const run = await until("an applied run", 25_000, async () => {
    const found = await database.client.provisioningRun.findFirst({ where: { environmentId: event.subject ?? "" } });
    return found?.state === "APPLIED" ? found : undefined;
  });
  expect(run).toMatchObject({ kind: "BASELINE", mode: "APPLY" });
  const history = await database.client.transition.findMany({ where: { aggregateId: run.id } });
  expect(new Set(history.map(({ correlationId }) => correlationId))).toEqual(new Set([event.correlationid]));

  await running.stop();
  await backend.close();
  await database.close();
  await drop();
  await rm(folder, { recursive: true, force: true });
});

test("doesn't start without its keys, and says what they look like without repeating them", () => {
  const DATABASE_URL = "postgres://localhost/x";
  expect(() => readConfig(settings, { DATABASE_URL })).toThrow(/STATE_ENCRYPTION_KEYS is not set; it wants: id:base64/);
  const wrong = () => readConfig(settings, { DATABASE_URL, STATE_ENCRYPTION_KEYS: "one:dG9vIHNob3J0" });
  expect(wrong).toThrow(ConfigError);
  expect(wrong).toThrow(/STATE_ENCRYPTION_KEYS \(value hidden\) key one must be 32 bytes in base64/);
});
