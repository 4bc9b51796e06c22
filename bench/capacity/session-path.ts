import type { ConnectRouter } from "@connectrpc/connect";
import { createClient } from "@connectrpc/connect";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { routes } from "@runtime-cloud/execution-capacity/routes";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { standardInterceptors } from "@runtime-cloud/service-kit/interceptors";
import { createLocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { createMetrics } from "@runtime-cloud/service-kit/metrics";
import { serve } from "@runtime-cloud/service-kit/serve";
import { openCapacityService } from "./capacity-service.ts";
import { HOT_SCOPE } from "./hot-scope.ts";
import { leaseCensus } from "./lease-census.ts";
import type { Held, LeasePath } from "./lease-path.ts";
import { openLeaseSession, type LeaseSession } from "./lease-session.ts";
import { noopSession } from "./noop-session.ts";

const { tenantId, projectId, poolId, holderKind, ttlSeconds } = HOT_SCOPE;
const GRACE_MS = 5_000;

/** Ours over its API: all callers share one LeaseSession. */
export async function openSessionPath(databaseUrl: string): Promise<LeasePath> {
  const { context, desk, close } = openCapacityService({ databaseUrl });
  const { session, end } = await servedSession(routes(context, desk));
  return {
    name: "runtime_cloud_session",
    about: "the same over one LeaseSession by gRPC, its client and its server in one process",
    acquire: () => acquireOver(session),
    check: await leaseCensus(context),
    async close() {
      await end();
      await close();
    },
  };
}

/** The same messages over the same server, interceptors and client, for a handler that answers at once. */
export async function openNoopSessionPath(): Promise<LeasePath> {
  const { session, end } = await servedSession((router) => {
    router.service(ExecutionCapacityService, { leaseSession: noopSession });
  });
  return {
    name: "noop_session",
    about: "the same messages, server, interceptors and client; the handler answers each at once and does nothing",
    acquire: () => acquireOver(session),
    check: async () => undefined,
    close: end,
  };
}

async function servedSession(
  served: (router: ConnectRouter) => void,
): Promise<{ session: LeaseSession; end(): Promise<void> }> {
  const issuer = await createLocalIssuer();
  const logger = silentLogger();
  const { verifier } = issuer;
  const server = await serve({
    host: "127.0.0.1",
    port: 0,
    routes: served,
    interceptors: standardInterceptors({ logger, verifier, metrics: createMetrics({ service: "bench" }) }),
    services: [ExecutionCapacityService.typeName],
    logger,
    graceMs: GRACE_MS,
  });
  const token = await issuer.issue({ subject: "bench", tenant: tenantId, scopes: ["capacity:lease"] });
  const transport = createGrpcJsTransport({ address: `127.0.0.1:${server.port}`, token: () => token });
  const session = openLeaseSession(createClient(ExecutionCapacityService, transport));
  return {
    session,
    async end() {
      await session.close();
      transport.close();
      await server.drain();
    },
  };
}

async function acquireOver(session: LeaseSession): Promise<Held> {
  const ttl = { seconds: BigInt(ttlSeconds) };
  const request = { poolId, projectId, holderKind, holderId: uuidv7(), ttl };
  const acquired = await session.submit({ operation: { case: "acquire", value: request } });
  if (acquired.case !== "acquired" || !acquired.value.lease) throw new Error(`no lease: ${JSON.stringify(acquired)}`);
  const { leaseId, fencingToken } = acquired.value.lease;
  return {
    token: fencingToken,
    async release() {
      const released = await session.submit({ operation: { case: "release", value: { leaseId } } });
      if (released.case !== "released") throw new Error(`lease ${leaseId} wasn't released: ${released.case ?? "?"}`);
    },
  };
}
