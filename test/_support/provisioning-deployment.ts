import { randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Client, createClient } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { createLocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import pg from "pg";
import { type TestDatabase, testDatabase } from "./database.ts";
import { type ProvisioningProcess, startProvisioningProcess } from "./provisioning-process.ts";
import { plainSecret } from "./provisioning-secrets.ts";
import { testRedis } from "./redis.ts";

export type ProvisioningRpcs = Client<typeof IaCProvisioningService>;

/** Processes of IaCProvisioningService on one database, one set of queues and one machine's directories. */
export interface ProvisioningDeployment {
  tenantId: string;
  /** The process that answers calls. */
  first: ProvisioningProcess;
  /** The service as the person calls it who asks for things, by the first process. */
  operator: ProvisioningRpcs;
  /** As somebody else does, who approves. */
  approver: ProvisioningRpcs;
  database: pg.Pool;
  backend: QueueBackend;
  folders: ProvisioningFolders;
  /** STATE_ENCRYPTION_KEYS. */
  encryptionKeys: string;
  /** The secret that the programs take as `token`. */
  token: string;
  /** Resolves when it is ready; the deployment's end is its end. */
  start(role: Role, variables?: Record<string, string>): Promise<ProvisioningProcess>;
  /** Ends a process of this deployment. */
  end(process: ProvisioningProcess, signal: NodeJS.Signals): Promise<number | null>;
  /** What all processes have written, those that are gone too. */
  said(): string;
  /** An environment that nothing was planned for yet. */
  environment(of?: "STAGING" | "PRODUCTION"): Promise<string>;
  close(): Promise<void>;
}

export interface ProvisioningFolders {
  /** Where engines work; a test may put another file system there. */
  work: string;
  /** Where programs and tests tell each other things; everybody may write. */
  signals: string;
}

export type Role = "all" | "api" | "executor";

export interface DeploymentOptions {
  /** What the first process is. */
  role: "all" | "api";
  /** Variables of every process, beside and before the usual ones. */
  variables?: Record<string, string>;
  /** Instead of a database of the server that all tests share. */
  database?: TestDatabase;
  /** Called before the first process starts. */
  prepare?: (folders: ProvisioningFolders) => Promise<void>;
}

const PROGRAMS = fileURLToPath(new URL("provisioning-programs", import.meta.url));
const KEY_BYTES = 32;

export async function deployProvisioning(options: DeploymentOptions): Promise<ProvisioningDeployment> {
  const database = options.database ?? (await testDatabase("iac-provisioning"));
  const folder = await mkdtemp(join(tmpdir(), "provisioning-"));
  const folders = await makeFolders(folder);
  await options.prepare?.(folders);
  const { url: redisUrl, prefix } = testRedis();
  const issuerFile = join(folder, "issuer.json");
  const issuer = await createLocalIssuer({ path: issuerFile });
  const encryptionKeys = `test:${randomBytes(KEY_BYTES).toString("base64")}`;
  const common = {
    DATABASE_URL: database.url,
    REDIS_URL: redisUrl,
    QUEUE_PREFIX: prefix,
    SUBSCRIBERS: "IaCProvisioningService",
    LOCAL_ISSUER_FILE: issuerFile,
    PROGRAMS_DIR: PROGRAMS,
    BASELINE_PROGRAM: "stepwise@1.0.0",
    TARGETS_DIR: join(folder, "targets"),
    WORK_DIR: folders.work,
    STATE_ENCRYPTION_KEYS: encryptionKeys,
    SHUTDOWN_GRACE_SECONDS: "5",
    CANCEL_GRACE_SECONDS: "1",
    ...options.variables,
  };

  const tenantId = `tenant-${uuidv7().slice(-6)}`;
  const processes: ProvisioningProcess[] = [];
  const running = new Set<ProvisioningProcess>();
  const start = async (role: Role, variables: Record<string, string> = {}) => {
    const started = await startProvisioningProcess({ ...common, ROLE: role, ...variables });
    processes.push(started);
    running.add(started);
    return started;
  };
  const end = async (process: ProvisioningProcess, signal: NodeJS.Signals) => {
    running.delete(process);
    return process.end(signal);
  };
  const first = await start(options.role);
  const callers = await Promise.all(
    ["operator", "approver"].map(async (subject) => {
      const token = await issuer.issue({ subject, tenant: tenantId, scopes: allScopes });
      const transport = createGrpcJsTransport({ address: first.address, token: () => token });
      return { transport, rpcs: createClient(IaCProvisioningService, transport) };
    }),
  );
  const [operator, approver] = callers;
  if (!operator || !approver) throw new Error("two people call");
  const pool = new pg.Pool({ connectionString: database.url, max: 3 });
  pool.on("error", () => undefined); // a test that ends connections sees it in its queries
  const backend = redisBackend({ url: redisUrl, prefix, logger: silentLogger() });

  return {
    tenantId,
    first,
    operator: operator.rpcs,
    approver: approver.rpcs,
    database: pool,
    backend,
    folders,
    encryptionKeys,
    token: plainSecret("token"),
    start,
    end,
    said: () => processes.map((process) => process.said()).join(""),
    async environment(of = "STAGING") {
      const id = uuidv7();
      await pool.query("INSERT INTO environment (id, tenant_id, project_id, class) VALUES ($1, $2, $3, $4)", [
        id,
        tenantId,
        uuidv7(),
        of,
      ]);
      return id;
    },
    async close() {
      for (const { transport } of callers) transport.close();
      await Promise.all([...running].map((process) => end(process, "SIGTERM")));
      await backend.close();
      await pool.end();
      await database.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Engines may run under another account, which must be able to pass. */
async function makeFolders(folder: string): Promise<ProvisioningFolders> {
  await chmod(folder, 0o755);
  const folders = { work: join(folder, "work"), signals: join(folder, "signals") };
  await mkdir(folders.work, { mode: 0o755 });
  await mkdir(folders.signals);
  await chmod(folders.signals, 0o777);
  return folders;
}
