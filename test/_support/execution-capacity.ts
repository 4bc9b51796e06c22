import { createClient, createRouterTransport, type Client, type Interceptor } from "@connectrpc/connect";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { PoolKind, PoolScaling } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { Deadline } from "@runtime-cloud/eventing/deadlines";
import { capacityDifferences } from "@runtime-cloud/execution-capacity/capacity/capacity-differences";
import type { Context, Provisioning } from "@runtime-cloud/execution-capacity/context";
import { type LeaseDesk, openLeaseDesk } from "@runtime-cloud/execution-capacity/desk/lease-desk";
import { openLeaseNews } from "@runtime-cloud/execution-capacity/leases/lease-news";
import { routes } from "@runtime-cloud/execution-capacity/routes";
import { settings } from "@runtime-cloud/execution-capacity/settings";
import { type Clock, systemClock } from "@runtime-cloud/service-kit/clock";
import { openDatabase } from "@runtime-cloud/service-kit/database";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { standardInterceptors } from "@runtime-cloud/service-kit/interceptors";
import { createLocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { type Logger, silentLogger } from "@runtime-cloud/service-kit/logger";
import { PrismaClient } from "../../services/execution-capacity/generated/prisma/client.ts";
import { testDatabase, type TestDatabase } from "./database.ts";

export type CapacityClient = Client<typeof ExecutionCapacityService>;

/** ExecutionCapacityService on a database of its own, its RPCs behind the real interceptors, its queues left out. */
export interface CapacityService {
  context: Context;
  /** Where the RPCs have leases decided. */
  desk: LeaseDesk;
  database: PrismaClient;
  /** Wake-ups that the service asked for, as `kind`. */
  readonly armed: { kind: string; at: Date; label: Record<string, string> | undefined }[];
  /** The service as a tenant's operator calls it, with every scope; each call gives a process of its own. */
  as(tenantId: string): CapacityClient;
  /** What a tenant's changes announced so far, in order: names of events beside their fields. */
  announced(tenantId: string): Promise<{ event: string; data: Record<string, unknown> }[]>;
  /** Counters that differ from the leases; always none. */
  differences(): ReturnType<typeof capacityDifferences>;
  close(): Promise<void>;
}

const SCOPES = ["capacity:operate", "capacity:quota", "capacity:lease", "capacity:read"];

export interface CapacityOptions {
  provisioning?: Provisioning["rpc"];
  /** By what way the service reaches its database's URL. */
  through?: (url: string) => string;
  /** Where several share one; else it has a database of its own. */
  database?: TestDatabase;
  clock?: Clock;
  logger?: Logger;
}

export async function startCapacity({
  provisioning,
  through = (url) => url,
  database: shared,
  clock = systemClock,
  logger = silentLogger(),
}: CapacityOptions = {}): Promise<CapacityService> {
  const database = shared ?? (await testDatabase("execution-capacity"));
  const url = through(database.url);
  const opened = openDatabase(
    { url, applicationName: "test", onError: () => undefined },
    (adapter) => new PrismaClient({ adapter }),
  );
  const armed: CapacityService["armed"] = [];
  const context: Context = {
    client: opened.client,
    pool: opened.pool,
    settings: settings.parse({
      DATABASE_URL: url,
      REDIS_URL: "redis://unused",
      SUBSCRIBERS: "ExecutionCapacityService",
    }),
    clock,
    newId: uuidv7,
    logger,
    announced: () => undefined,
    arm: async (kind, at, label) => void armed.push({ kind, at, label }),
    enqueue: async () => undefined,
    provisioning: { rpc: provisioning ?? absentProvisioning(), close: () => undefined },
    news: openLeaseNews({ client: opened.client, logger }),
  };
  const desk = openLeaseDesk(context);
  const issuer = await createLocalIssuer();
  const interceptors = standardInterceptors({ logger, verifier: issuer.verifier });

  const authorized = (tenant: string): Interceptor => {
    const token = issuer.issue({ subject: `operator of ${tenant}`, tenant, scopes: SCOPES });
    return (next) => async (request) => {
      request.header.set("authorization", `Bearer ${await token}`);
      return next(request);
    };
  };

  return {
    context,
    desk,
    database: opened.client,
    armed,
    as(tenantId) {
      const transport = { interceptors: [authorized(tenantId)] };
      return createClient(
        ExecutionCapacityService,
        createRouterTransport(routes(context, desk), { router: { interceptors }, transport }),
      );
    },
    async announced(tenantId) {
      const rows = await opened.client.$queryRaw<{ event: string; data: Record<string, unknown> }[]>`
        SELECT split_part(envelope->>'dataschema', '.', 4) AS event, envelope->'data' AS data
        FROM outbox_message WHERE tenant_id = ${tenantId} ORDER BY position`;
      return rows;
    },
    differences: () => capacityDifferences(opened.client),
    async close() {
      await context.news.stop();
      await opened.close();
      if (!shared) await database.drop();
    },
  };
}

/** A pool that has its size at once. */
export function staticPool(poolId: string, size: number) {
  return { poolId, size, kind: PoolKind.RUN_WORKERS, scaling: PoolScaling.STATIC };
}

/** An attempt's request for one slot; every call is another attempt unless `changes` names it. */
export function attempt(poolId: string, changes: Request = {}) {
  return { poolId, projectId: "p1", holderKind: "Attempt", holderId: uuidv7(), ttl: { seconds: 60n }, ...changes };
}

type Request = Partial<
  Pick<Parameters<CapacityClient["acquireLease"]>[0], "units" | "ttl" | "wait" | "priority"> & {
    holderKind: string;
    holderId: string;
    projectId: string;
  }
>;

/** As long as a test needs. */
export const patiently = { wait: { seconds: 600n } };

/** Calls a deadline as a wake-up does, until nothing is due. */
export async function runOut(deadline: Deadline): Promise<string[]> {
  const ended: string[] = [];
  for (let more: boolean | undefined = true; more;) {
    const result = await deadline.run();
    ended.push(...result.ended);
    more = result.more;
  }
  return ended;
}

/** IaCProvisioningService where nobody listens. */
function absentProvisioning(): Provisioning["rpc"] {
  return createClient(
    IaCProvisioningService,
    createRouterTransport(() => undefined),
  );
}
