import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { STATE_BACKEND_PATH } from "@runtime-cloud/iac-provisioning/state/state-backend";
import { freePort } from "@runtime-cloud/local-servers/ports";
import { startServiceProcess } from "@runtime-cloud/runtime-cloud-host/service-process";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import pg from "pg";
import { type AppliedNews, LISTENER, listenForApplied } from "./applied-news.ts";
import { THREE_RESOURCES } from "./bench-programs.ts";
import { PASSABLE, type ProvisioningServers } from "./provisioning-servers.ts";

/** IaCProvisioningService as it is deployed: a process with a database and queues of its own, called by gRPC. */
export interface ProvisioningService {
  readonly tenantId: string;
  readonly client: Client<typeof IaCProvisioningService>;
  readonly news: AppliedNews;
  /** Its process. */
  readonly pid: number;
  /** Where engines reach their state. */
  readonly stateAddress: string;
  /** The same database for whoever prepares and checks. */
  readonly aside: pg.Pool;
  close(): Promise<void>;
}

/** Runs that a service works on at once, which the bare engine is run with too. */
export const CONCURRENCY = 4;
const KEY_BYTES = 32;

/** `name` is that of its database and of its queues. */
export async function openProvisioningService(
  servers: ProvisioningServers,
  name: string,
): Promise<ProvisioningService> {
  const tenantId = `tenant-${name}`;
  const databaseUrl = await servers.database("iac-provisioning", name);
  await mkdir(path.join(servers.folder, name), { recursive: true, mode: PASSABLE });
  const [api, admin, state] = [await freePort(), await freePort(), await freePort()];
  const prefix = `{bench-${name}}`;
  const service = startServiceProcess("iac-provisioning", {
    ...variables(servers, name),
    DATABASE_URL: databaseUrl,
    REDIS_URL: servers.redisUrl,
    QUEUE_PREFIX: prefix,
    PORT: String(api),
    ADMIN_PORT: String(admin),
    STATE_BACKEND_PORT: String(state),
  });
  const token = await servers.issuer.issue({ subject: "bench", tenant: tenantId, scopes: allScopes });
  const transport = createGrpcJsTransport({ address: `127.0.0.1:${api}`, token: () => token });
  const queues = redisBackend({ url: servers.redisUrl, prefix, logger: silentLogger() });
  const aside = new pg.Pool({ connectionString: databaseUrl });
  const close = async () => {
    transport.close();
    await service.stop();
    await queues.close();
    await aside.end();
  };
  const { pid } = service;
  try {
    if (pid === undefined) throw new Error("the service's process could not be started");
    await service.ready();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    tenantId,
    client: createClient(IaCProvisioningService, transport),
    news: listenForApplied(queues),
    pid,
    stateAddress: `http://127.0.0.1:${state}${STATE_BACKEND_PATH}`,
    aside,
    close,
  };
}

function variables({ engine, folder, programs, issuerFile }: ProvisioningServers, name: string): NodeJS.ProcessEnv {
  return {
    LOG_LEVEL: "warn",
    LOG_FORMAT: "pretty",
    LOCAL_ISSUER_FILE: issuerFile,
    SUBSCRIBERS: LISTENER,
    EXECUTOR_CONCURRENCY: String(CONCURRENCY),
    IAC_ENGINE_BIN: engine.binary,
    PROGRAMS_DIR: programs,
    BASELINE_PROGRAM: THREE_RESOURCES,
    TARGETS_DIR: path.join(folder, name, "targets"),
    WORK_DIR: path.join(folder, name, "work"),
    STATE_ENCRYPTION_KEYS: `bench:${randomBytes(KEY_BYTES).toString("base64")}`,
  };
}
