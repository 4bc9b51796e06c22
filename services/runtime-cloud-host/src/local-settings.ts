import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dataFolder } from "@runtime-cloud/local-servers/data-folder";
import type { ServiceName } from "@runtime-cloud/migrations/services";
import type { LocalInfrastructure } from "./local-infrastructure.ts";
import type { LocalFolders } from "./local-run.ts";
import { AUDIENCE } from "./story/audience.ts";

/** What `npm start` and the demo tell a service beside its own defaults. */
export interface LocalSettings {
  infrastructure: LocalInfrastructure;
  folders: LocalFolders;
  env: NodeJS.ProcessEnv;
  /** Keeps runs apart that share a Redis. */
  queuePrefix: string;
  baselineProgram: string;
  /** `host:port` of IaCProvisioningService. */
  provisioningPort: number;
  logLevel: string;
}

/** Whose inbox nobody reads in a local run, so that it is free for `examples/consumer`. */
export const FREE_SUBSCRIBER = "StudioBff";
const SUBSCRIBERS = [
  "IaCProvisioningService",
  "ExecutionCapacityService",
  "RuntimeEnvironmentService",
  FREE_SUBSCRIBER,
  ...AUDIENCE,
];

/** The environment's variables for one service of a local run. What the caller's environment sets goes first. */
export function localVariables(service: ServiceName, local: LocalSettings): NodeJS.ProcessEnv {
  // These belong to one process; three services that shared them would be in each other's way.
  const { PORT: _port, ADMIN_PORT: _adminPort, ...env } = local.env;
  return {
    LOG_LEVEL: local.logLevel,
    LOG_FORMAT: "pretty",
    SHUTDOWN_GRACE_SECONDS: "5",
    LOCAL_ISSUER_FILE: local.folders.issuerFile,
    SUBSCRIBERS: SUBSCRIBERS.join(","),
    QUEUE_PREFIX: local.queuePrefix,
    TARGETS_DIR: local.folders.targetsDir,
    WORK_DIR: local.folders.workDir,
    BASELINE_PROGRAM: local.baselineProgram,
    STATE_ENCRYPTION_KEYS: stateEncryptionKey(),
    HTTP_OBSERVER_LOOPBACK: "allow",
    ...env,
    ...local.infrastructure.queues,
    DATABASE_URL: local.infrastructure.databaseUrls[service],
    PROVISIONING_URL: `http://127.0.0.1:${local.provisioningPort}`,
  };
}

/** Made once for a machine, so that the states of an earlier run can still be read. */
function stateEncryptionKey(): string {
  const file = join(dataFolder("keys"), "state-encryption-keys");
  if (!existsSync(file)) {
    mkdirSync(dataFolder("keys"), { recursive: true, mode: 0o700 });
    writeFileSync(file, `local:${randomBytes(32).toString("base64")}`, { mode: 0o600 });
  }
  return readFileSync(file, "utf8");
}
