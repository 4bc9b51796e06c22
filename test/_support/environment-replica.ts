import { type Client, createClient } from "@connectrpc/connect";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import { freePort } from "@runtime-cloud/local-servers/ports";
import { type ServiceProcess, startServiceProcess } from "@runtime-cloud/runtime-cloud-host/service-process";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import type pg from "pg";
import type { TestDeployment } from "./deployment.ts";

/** One more process of RuntimeEnvironmentService on the same database and queues. */
export interface Replica {
  environments: Client<typeof RuntimeEnvironmentService>;
  kill(): Promise<void>;
  close(): Promise<void>;
}

export async function startReplica({ services, token }: TestDeployment): Promise<Replica> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const variables = { PORT: String(port), ADMIN_PORT: String(adminPort) };
  const process: ServiceProcess = startServiceProcess("runtime-environment", {
    ...services.variables("runtime-environment"),
    ...variables,
  });
  await process.ready();
  const transport = createGrpcJsTransport({ address: `127.0.0.1:${port}`, token: () => token });
  let killed: Promise<void> | undefined;
  return {
    environments: createClient(RuntimeEnvironmentService, transport),
    kill: () => (killed ??= process.kill()),
    async close() {
      transport.close();
      await (killed ?? process.stop());
    },
  };
}

/** The revisions of an environment's changes, in order: 1, 2, 3 and so on unless one is lost or doubled. */
export async function revisionsOf(database: pg.Pool, environmentId: string): Promise<number[]> {
  const { rows } = await database.query<{ revision: string }>(
    "SELECT revision FROM inventory_change WHERE inventory_id = $1 ORDER BY revision",
    [environmentId],
  );
  return rows.map(({ revision }) => Number(revision));
}
