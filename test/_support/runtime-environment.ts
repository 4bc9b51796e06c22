import { type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { type Client, ConnectError, createClient, createRouterTransport, type Interceptor } from "@connectrpc/connect";
import { type CloudEvent, envelop } from "@runtime-cloud/contracts/events/cloud-event";
import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { eventCause } from "@runtime-cloud/eventing/cause";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import type { Context } from "@runtime-cloud/runtime-environment/context";
import { deadlines } from "@runtime-cloud/runtime-environment/deadlines";
import { inboxHandlers } from "@runtime-cloud/runtime-environment/inbox";
import { registerObservationMetrics } from "@runtime-cloud/runtime-environment/observing/observation-metrics";
import { kubernetesAccess } from "@runtime-cloud/runtime-environment/observers/kubernetes/kubernetes-access";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { peer } from "@runtime-cloud/eventing/peer";
import { routes } from "@runtime-cloud/runtime-environment/routes";
import { settings } from "@runtime-cloud/runtime-environment/settings";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { openDatabase } from "@runtime-cloud/service-kit/database";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { standardInterceptors } from "@runtime-cloud/service-kit/interceptors";
import { createLocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { Registry } from "prom-client";
import { PrismaClient } from "../../services/runtime-environment/generated/prisma/client.ts";
import { testDatabase } from "./database.ts";
import { type ProvisioningServer, startProvisioning } from "./provisioning-server.ts";

export type EnvironmentClient = Client<typeof RuntimeEnvironmentService>;

/** RuntimeEnvironmentService on a database of its own, its RPCs behind the real interceptors, its queues left out. */
export interface EnvironmentService {
  context: Context;
  database: PrismaClient;
  provisioning: ProvisioningServer;
  /** Work that the service asked for, as ids of environments. */
  enqueued: string[];
  /** What the service counts of its looks. */
  registry: Registry;
  /** The service as a tenant's operator calls it, with every scope. */
  as(tenantId: string): EnvironmentClient;
  /** What a tenant's changes announced so far, in order: names of events beside their fields. */
  announced(tenantId: string): Promise<{ event: string; data: Record<string, unknown> }[]>;
  /** Has the service take in an event, without a queue and without a receipt. */
  deliver(event: CloudEvent): Promise<void>;
  /** A new environment of a tenant that the service knows by its event. */
  created(tenantId: string, projectId?: string): Promise<string>;
  /** Calls a deadline as a wake-up does, until nothing is due. */
  runOut(kind: string): Promise<string[]>;
  close(): Promise<void>;
}

const SCOPES = ["inventory:observe", "inventory:operate", "inventory:decide", "inventory:read"];

export async function startEnvironments(): Promise<EnvironmentService> {
  const ownDatabase = await testDatabase("runtime-environment");
  const { url } = ownDatabase;
  const provisioningServer = await startProvisioning();
  const logger = silentLogger();
  const opened = openDatabase(
    { url, applicationName: "test", onError: () => undefined },
    (adapter) => new PrismaClient({ adapter }),
  );
  const given = settings.parse({
    DATABASE_URL: url,
    REDIS_URL: "redis://unused",
    SUBSCRIBERS: "RuntimeEnvironmentService",
    PROVISIONING_URL: provisioningServer.url,
    SERVICE_TOKEN: "test",
    HTTP_OBSERVER_LOOPBACK: "allow",
  });
  const provisioning = peer(IaCProvisioningService, given.PROVISIONING_URL, given);
  const enqueued: string[] = [];
  const registry = new Registry();
  const onChange = async (id: string) => void enqueued.push(id);
  const kubernetes = kubernetesAccess({ settings: given, logger, onChange });
  const context: Context = {
    client: opened.client,
    pool: opened.pool,
    settings: given,
    clock: systemClock,
    newId: uuidv7,
    logger,
    announced: () => undefined,
    arm: () => Promise.resolve(),
    enqueue: async (_queue, id) => void enqueued.push(id),
    provisioning,
    kubernetes,
    measures: registerObservationMetrics(registry),
  };
  const issuer = await createLocalIssuer();
  const interceptors = standardInterceptors({ logger, verifier: issuer.verifier });
  const handlers = inboxHandlers(context);

  const authorized = (tenant: string): Interceptor => {
    const token = issuer.issue({ subject: `operator of ${tenant}`, tenant, scopes: SCOPES });
    return (next) => async (request) => {
      request.header.set("authorization", `Bearer ${await token}`);
      return next(request);
    };
  };

  const service: EnvironmentService = {
    context,
    database: opened.client,
    provisioning: provisioningServer,
    enqueued,
    registry,
    as(tenantId) {
      const transport = { interceptors: [authorized(tenantId)] };
      return createClient(
        RuntimeEnvironmentService,
        createRouterTransport(routes(context), { router: { interceptors }, transport }),
      );
    },
    announced: (tenantId) => opened.client.$queryRaw<{ event: string; data: Record<string, unknown> }[]>`
      SELECT split_part(envelope->>'dataschema', '.', 4) AS event, envelope->'data' AS data
      FROM outbox_message WHERE tenant_id = ${tenantId} ORDER BY position`,
    async deliver(event) {
      for (const handler of handlers.filter(({ schema }) => schema.typeName === event.dataschema)) {
        await unitOfWork(context, eventCause(event, handler.name), handler.prepare(event));
      }
    },
    async created(tenantId, projectId = uuidv7()) {
      const environmentId = uuidv7();
      const fields = { environmentId, projectId, tenantId, class: EnvironmentClass.STAGING };
      await service.deliver(eventAbout(EnvironmentCreatedSchema, fields, { id: environmentId, tenantId }));
      return environmentId;
    },
    async runOut(kind) {
      const deadline = deadlines(context).find((each) => each.kind === kind);
      if (!deadline) throw new Error(`no deadline is called ${kind}`);
      const ended: string[] = [];
      for (let more: boolean | undefined = true; more;) {
        const result = await deadline.run();
        ended.push(...result.ended);
        more = result.more;
      }
      return ended;
    },
    async close() {
      await kubernetes.close();
      provisioning.close();
      await provisioningServer.down();
      await opened.close();
      await ownDatabase.drop();
    },
  };
  return service;
}

/** An event as another service sends it. */
export function eventAbout<Desc extends DescMessage>(
  schema: Desc,
  fields: MessageInitShape<Desc>,
  subject: { id: string; tenantId: string },
): CloudEvent {
  const cause = { actor: "test", correlationId: uuidv7() };
  return envelop(schema, fields, { id: uuidv7(), at: systemClock.now(), subject, aggregateVersion: 1, cause });
}

/** How a call was refused; fails when it wasn't. */
export async function refusalOf(call: Promise<unknown>): Promise<ConnectError> {
  const outcome = await call.then(
    () => undefined,
    (error: unknown) => ConnectError.from(error),
  );
  if (!outcome) throw new Error("the call was not refused");
  return outcome;
}
