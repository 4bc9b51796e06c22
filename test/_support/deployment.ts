import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { type LocalRedis, startRedis } from "@runtime-cloud/local-servers/redis";
import type { ServiceName } from "@runtime-cloud/migrations/services";
import { type Deployment, deployment } from "@runtime-cloud/runtime-cloud-host/deployment";
import { enginePrograms } from "@runtime-cloud/runtime-cloud-host/engine-programs";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { setStage, type Stage } from "@runtime-cloud/runtime-cloud-host/story/stage";
import { createLocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import { Redis } from "ioredis";
import { type TestDatabase, testDatabase } from "./database.ts";

/** Service processes on a Redis of their own, which may be paused and flushed. */
export interface TestDeployment {
  services: Deployment;
  stage: Stage;
  backend: QueueBackend;
  /** Of the stage's tenant, with every scope. */
  token: string;
  /** For CLIENT PAUSE, FLUSHALL and the like. */
  redis: Redis;
  /** Nothing can be added to a queue or taken off it, until `resumeQueues`; everything else goes on. */
  pauseQueues(): Promise<void>;
  resumeQueues(): Promise<void>;
  /** Resolves when a subscriber has worked off its inbox. */
  inboxIsDone(subscriber: string): Promise<void>;
  /** As a crash does: what it held is gone. */
  killRedis(): Promise<void>;
  /** After `killRedis`: another one, empty, takes its place. */
  restartRedis(): Promise<void>;
  close(): Promise<void>;
}

const PAUSE_MS = 60_000;

export interface TestDeployOptions {
  /** Variables of every service, beside the usual ones. */
  env?: NodeJS.ProcessEnv;
  /** Instead of the example that the engine at hand can run. */
  baselineProgram?: string;
}

/** Starts `services`; the others can be started later. */
export async function deploy(
  services: readonly ServiceName[],
  print: (line: string) => void = () => undefined,
  { env = {}, baselineProgram }: TestDeployOptions = {},
): Promise<TestDeployment> {
  const folder = await mkdtemp(join(tmpdir(), "runtime-cloud-deployment-"));
  let server = await startRedis();
  const databases = {
    "iac-provisioning": await testDatabase("iac-provisioning"),
    "execution-capacity": await testDatabase("execution-capacity"),
    "runtime-environment": await testDatabase("runtime-environment"),
  };
  const prefix = "{test}";
  const issuerFile = join(folder, "issuer.json");
  const targetsDir = join(folder, "environments");
  const programs = await enginePrograms(process.env, () => undefined);
  const infrastructure = {
    databaseUrls: {
      "iac-provisioning": databases["iac-provisioning"].url,
      "execution-capacity": databases["execution-capacity"].url,
      "runtime-environment": databases["runtime-environment"].url,
    },
    queues: { REDIS_URL: server.url },
    stop: () => stopAll(server, Object.values(databases), folder),
  };
  const processes = await deployment({
    infrastructure,
    folders: { issuerFile, targetsDir, workDir: join(folder, "work") },
    env,
    queuePrefix: prefix,
    baselineProgram: baselineProgram ?? programs.baseline,
    logLevel: "error",
  });
  const backend = redisBackend({ url: server.url, prefix, logger: silentLogger() });
  const issuer = await createLocalIssuer({ path: issuerFile });
  const { urls } = processes;
  const { databaseUrls } = infrastructure;
  const stage = await setStage({ urls, databaseUrls, backend, issuer, targetsDir, programs, print });
  const redis = new Redis(server.url);
  redis.on("error", () => undefined); // the failed command says it too
  await Promise.all(services.map((service) => processes.start(service)));
  const token = await issuer.issue({ subject: "test", tenant: stage.tenantId, scopes: allScopes });
  return {
    services: processes,
    token,
    stage,
    backend,
    redis,
    async pauseQueues() {
      await redis.call("CLIENT", "PAUSE", String(PAUSE_MS), "WRITE");
    },
    async resumeQueues() {
      await redis.call("CLIENT", "UNPAUSE");
    },
    async inboxIsDone(subscriber) {
      const queue = backend.queue(inboxOf(subscriber));
      await eventually(`an empty ${queue.name}`, async () => {
        const open = await queue.getJobCountByTypes("waiting", "active", "delayed", "prioritized");
        return open === 0 ? true : undefined;
      });
    },
    killRedis: () => server.kill(),
    async restartRedis() {
      server = await startRedis({ port: server.port, password: server.password });
    },
    async close() {
      await processes.stop();
      await stage.close();
      await backend.close();
      await redis.quit();
      await infrastructure.stop();
    },
  };
}

async function stopAll(redis: LocalRedis, databases: TestDatabase[], folder: string): Promise<void> {
  await redis.stop();
  await Promise.all(databases.map((database) => database.drop()));
  await rm(folder, { recursive: true, force: true });
}
