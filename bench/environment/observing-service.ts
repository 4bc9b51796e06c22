import { type Client, createClient } from "@connectrpc/connect";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import pg from "pg";
import { type EnvironmentServers, SELDOM, SUBSCRIBERS } from "./environment-servers.ts";
import { runService } from "./running-process.ts";

/** RuntimeEnvironmentService as it is deployed: a process with a database of its own, called by gRPC. */
export interface ObservingService {
  readonly tenantId: string;
  readonly client: Client<typeof RuntimeEnvironmentService>;
  readonly adminUrl: string;
  readonly queues: QueueBackend;
  /** The same database for whoever prepares and checks. */
  readonly aside: pg.Pool;
  close(): Promise<void>;
}

/** `name` is its database's. Its queues are IaCProvisioningService's, or its own: then it hears no events. */
export async function openObservingService(
  servers: EnvironmentServers,
  name: string,
  queuePrefix = `{bench-${name}}`,
): Promise<ObservingService> {
  const { redisUrl, issuer, issuerFile, provisioning } = servers;
  const databaseUrl = await servers.database("runtime-environment", name);
  const running = await runService("runtime-environment", {
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    QUEUE_PREFIX: queuePrefix,
    LOCAL_ISSUER_FILE: issuerFile,
    SUBSCRIBERS,
    PROVISIONING_URL: provisioning.url,
    HTTP_OBSERVER_LOOPBACK: "allow",
    ...SELDOM,
  });
  const tenantId = `tenant-${name}`;
  const token = await issuer.issue({ subject: "bench", tenant: tenantId, scopes: allScopes });
  const transport = createGrpcJsTransport({ address: running.address, token: () => token });
  const queues = redisBackend({ url: redisUrl, prefix: queuePrefix, logger: silentLogger() });
  const aside = new pg.Pool({ connectionString: databaseUrl });
  return {
    tenantId,
    client: createClient(RuntimeEnvironmentService, transport),
    adminUrl: running.adminUrl,
    queues,
    aside,
    async close() {
      transport.close();
      await running.stop();
      await queues.close();
      await aside.end();
    },
  };
}
