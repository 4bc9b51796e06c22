import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createLocalIssuer, type LocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import pg from "pg";
import { PASSABLE } from "../provisioning/provisioning-servers.ts";
import { type BenchServers, withServers } from "../servers.ts";
import { type Endpoints, startEndpoints } from "./endpoints.ts";
import { runService } from "./running-process.ts";

/** What the parts of the running state's benchmark share. */
export interface EnvironmentServers extends BenchServers {
  /** The one that the services trust, whose key is in `issuerFile`. */
  readonly issuer: LocalIssuer;
  readonly issuerFile: string;
  readonly endpoints: Endpoints;
  readonly provisioning: ProvisioningProcess;
}

/** IaCProvisioningService in its own process: what the engine observers ask. */
export interface ProvisioningProcess {
  readonly url: string;
  /** Its queues, which whoever hears its events shares. */
  readonly queuePrefix: string;
  /** Where its engine keeps the files of environments: `<tenantId>/<environmentId>/<kind>`. */
  readonly targetsDir: string;
  /** Its database for whoever prepares and checks. */
  readonly aside: pg.Pool;
}

/** Hears what both services announce, outside of them. */
export const LISTENER = "AuditService";
const OWN_SUBSCRIBERS = ["IaCProvisioningService", "RuntimeEnvironmentService"];
/** Everybody whom a service's relay tells. */
export const SUBSCRIBERS = [...OWN_SUBSCRIBERS, LISTENER].join(",");
/** For environments that are configured by nobody: none of them is due while anything is measured. */
export const SELDOM = { OBSERVE_EVERY_SECONDS: "86400", STALE_AFTER_SECONDS: "172800" };
/** What a new environment begins with: three files. */
export const BASELINE = "environment-baseline-manifests@1.0.0";
const QUEUE_PREFIX = "{bench-running-state}";
const KEY_BYTES = 32;

export function withEnvironmentServers<T>(work: (servers: EnvironmentServers) => Promise<T>): Promise<T> {
  return withServers(async (servers) => {
    const folder = await mkdtemp(path.join(tmpdir(), "runtime-cloud-bench-"));
    await chmod(folder, PASSABLE);
    const endpoints = await startEndpoints();
    try {
      const issuerFile = path.join(folder, "issuer.json");
      const issuer = await createLocalIssuer({ path: issuerFile });
      return await withProvisioning(servers, { folder, issuerFile }, (provisioning) =>
        work({ ...servers, issuer, issuerFile, endpoints, provisioning }),
      );
    } finally {
      await endpoints.close();
      await rm(folder, { recursive: true, force: true });
    }
  });
}

async function withProvisioning<T>(
  { database, redisUrl }: BenchServers,
  { folder, issuerFile }: { folder: string; issuerFile: string },
  work: (provisioning: ProvisioningProcess) => Promise<T>,
): Promise<T> {
  const databaseUrl = await database("iac-provisioning");
  const targetsDir = path.join(folder, "targets");
  const running = await runService("iac-provisioning", {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    QUEUE_PREFIX,
    LOCAL_ISSUER_FILE: issuerFile,
    SUBSCRIBERS,
    BASELINE_PROGRAM: BASELINE,
    TARGETS_DIR: targetsDir,
    WORK_DIR: path.join(folder, "work"),
    STATE_ENCRYPTION_KEYS: `bench:${randomBytes(KEY_BYTES).toString("base64")}`,
  });
  const aside = new pg.Pool({ connectionString: databaseUrl });
  try {
    return await work({ url: `http://${running.address}`, queuePrefix: QUEUE_PREFIX, targetsDir, aside });
  } finally {
    await running.stop();
    await aside.end();
  }
}
