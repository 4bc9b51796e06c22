import { randomBytes } from "node:crypto";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { jest } from "@jest/globals";
import type { DescMessage, JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { type Client, ConnectError, createClient, createRouterTransport, type Interceptor } from "@connectrpc/connect";
import { type CloudEvent, envelop } from "@runtime-cloud/contracts/events/cloud-event";
import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { DeclareSpecificationRequestSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/specifications_pb";
import type { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import {
  ProvisioningKind,
  RunMode,
  type RunState,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { eventCause } from "@runtime-cloud/eventing/cause";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { deadlines } from "@runtime-cloud/iac-provisioning/deadlines";
import { executeNext, executeRun, type TurnResult } from "@runtime-cloud/iac-provisioning/execution/executor";
import { inbox } from "@runtime-cloud/iac-provisioning/inbox";
import { openContext, type OpenContext } from "@runtime-cloud/iac-provisioning/open-context";
import { routes } from "@runtime-cloud/iac-provisioning/routes";
import { enqueueReady } from "@runtime-cloud/iac-provisioning/runs/run-queue";
import { settings } from "@runtime-cloud/iac-provisioning/settings";
import { until } from "@runtime-cloud/local-servers/until";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { openDatabase } from "@runtime-cloud/service-kit/database";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { standardInterceptors } from "@runtime-cloud/service-kit/interceptors";
import { createLocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { PrismaClient } from "../../services/iac-provisioning/generated/prisma/client.ts";
import { testDatabase } from "./database.ts";

/** Of a test that has real engines at work, which take their time on a busy machine. */
jest.setTimeout(180_000);

export type ProvisioningClient = Client<typeof IaCProvisioningService>;

/**
 * IaCProvisioningService on a database of its own, its RPCs behind the real interceptors and its engines real; the
 * queues are left out: `work` does what an executor finds to do.
 */
export interface IacService {
  context: OpenContext;
  database: PrismaClient;
  /** A copy of the example programs, to add to and to break. */
  programs: string;
  targets: string;
  /** The service as one of a tenant's people calls it, with every scope. */
  as(tenantId: string, subject?: string): ProvisioningClient;
  /** Names of the events that were announced about a subject, in order, beside their fields. */
  announced(subject: string): Promise<{ event: string; data: Record<string, unknown> }[]>;
  /** Has the service take in an event, without a queue and without a receipt. */
  deliver(event: CloudEvent): Promise<void>;
  /** An environment that the service knows, and that nothing was planned for yet. */
  environment(tenantId: string, of?: keyof typeof EnvironmentClass): Promise<string>;
  /** Plans and applies whatever can go on, until nothing can. */
  work(): Promise<void>;
  /** Works on one run, whosever turn it is. */
  execute(runId: string, stop?: AbortSignal): Promise<TurnResult | undefined>;
  /** Works on the run whose turn it is, as a job does. */
  executeNext(stop?: AbortSignal): Promise<TurnResult | undefined>;
  state(runId: string): Promise<keyof typeof RunState>;
  /** Calls a deadline as a wake-up does, until nothing is due. */
  runOut(kind: string): Promise<string[]>;
  /** Has a run's executor be silent for longer than its lease, also one that goes on sending heartbeats. */
  loseExecutor(runId: string): Promise<void>;
  close(): Promise<void>;
}

const SCOPES = ["declare", "plan", "cancel", "approve", "operate", "publish", "read"].map(
  (verb) => `provisioning:${verb}`,
);
const LOST_WITHIN_MS = 20_000;
/** The first transaction of a process may take longer on a busy machine than the service allows it. */
const PATIENT = { maxWait: 20_000, timeout: 30_000 };
const EXAMPLES = new URL("../../examples/programs", import.meta.url).pathname;

export async function startIacProvisioning(changes: Record<string, string> = {}): Promise<IacService> {
  const { url, drop } = await testDatabase("iac-provisioning");
  const folder = await mkdtemp(path.join(tmpdir(), "iac-provisioning-"));
  const programs = path.join(folder, "programs");
  const targets = path.join(folder, "targets");
  await cp(EXAMPLES, programs, { recursive: true });

  const logger = silentLogger();
  const opened = openDatabase(
    { url, applicationName: "test", onError: () => undefined },
    (adapter) => new PrismaClient({ adapter, transactionOptions: PATIENT }),
  );
  const context = await openContext({
    client: opened.client,
    pool: opened.pool,
    settings: settings.parse({
      DATABASE_URL: url,
      REDIS_URL: "redis://unused",
      SUBSCRIBERS: "IaCProvisioningService",
      PROGRAMS_DIR: programs,
      TARGETS_DIR: targets,
      WORK_DIR: path.join(folder, "work"),
      PATH: process.env["PATH"],
      CANCEL_GRACE_SECONDS: "0",
      STATE_ENCRYPTION_KEYS: `test:${randomBytes(32).toString("base64")}`,
      ...changes,
    }),
    clock: systemClock,
    newId: uuidv7,
    logger,
    announced: () => undefined,
    arm: () => Promise.resolve(),
    enqueue: () => Promise.resolve(),
  });
  const issuer = await createLocalIssuer();
  const interceptors = standardInterceptors({ logger, verifier: issuer.verifier });
  const handlers = inbox(context);

  const authorized = (tenant: string, subject: string): Interceptor => {
    const token = issuer.issue({ subject, tenant, scopes: SCOPES });
    return (next) => async (request) => {
      request.header.set("authorization", `Bearer ${await token}`);
      return next(request);
    };
  };

  const service: IacService = {
    context,
    database: opened.client,
    programs,
    targets,
    as(tenantId, subject = "alice") {
      const transport = { interceptors: [authorized(tenantId, subject)] };
      return createClient(
        IaCProvisioningService,
        createRouterTransport(routes(context), { router: { interceptors }, transport }),
      );
    },
    announced: (subject) => opened.client.$queryRaw<{ event: string; data: Record<string, unknown> }[]>`
      SELECT split_part(envelope->>'dataschema', '.', 4) AS event, envelope->'data' AS data
      FROM outbox_message WHERE subject = ${subject} ORDER BY position`,
    async deliver(event) {
      for (const handler of handlers.filter(({ schema }) => schema.typeName === event.dataschema)) {
        await unitOfWork(context, eventCause(event, handler.name), handler.prepare(event));
      }
    },
    async environment(tenantId, of = "STAGING") {
      const { id } = await opened.client.environment.create({
        data: { id: uuidv7(), tenantId, projectId: uuidv7(), class: of === "UNSPECIFIED" ? "PRODUCTION" : of },
      });
      return id;
    },
    async work() {
      for (let ready = await enqueueReady(context); ready.length > 0; ready = await enqueueReady(context)) {
        for (const runId of ready) await service.execute(runId);
      }
    },
    execute: (runId, stop = new AbortController().signal) => executeRun(context, runId, stop),
    executeNext: (stop = new AbortController().signal) => executeNext(context, "", stop),
    async state(runId) {
      const { state } = await opened.client.provisioningRun.findUniqueOrThrow({ where: { id: runId } });
      return state;
    },
    async runOut(kind) {
      const deadline = deadlines(context).find((each) => each.kind === kind);
      if (!deadline) throw new Error(`no deadline is called ${kind}`);
      const { ended } = await deadline.run();
      return [...ended];
    },
    async loseExecutor(runId) {
      await until("the end of the executor's lease", LOST_WITHIN_MS, async () => {
        await opened.client.$executeRaw`
          UPDATE provisioning_run SET executor_until = clock_timestamp() - interval '1 second'
          WHERE id = ${runId}::uuid`;
        return (await service.runOut("executor-lost")).includes(runId) || undefined;
      });
    },
    async close() {
      await context.close();
      await opened.close();
      await drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return service;
}

export function webService(environmentId: string, parameters: JsonObject = {}) {
  return {
    environmentId,
    kind: SpecificationKind.RELEASE,
    programVersion: "web-service@1.0.0",
    parameters: { name: "shop", environment: "e1", version: "1.2.3", ...parameters },
  };
}

type Declaration = MessageInitShape<typeof DeclareSpecificationRequestSchema>;

/** Declares, and returns the specification's id. */
export async function declare(client: ProvisioningClient, declaration: Declaration): Promise<string> {
  const { specification } = await client.declareSpecification(declaration);
  return specification?.specificationId ?? "";
}

/** Plans a promotion unless another kind is named, and returns the run's id. */
export async function plan(
  client: ProvisioningClient,
  specificationId: string,
  kind = ProvisioningKind.PROMOTION,
  mode = RunMode.APPLY,
): Promise<string> {
  const { run } = await client.planProvisioning({ specificationId, kind, mode });
  return run?.provisioningRunId ?? "";
}

/** An event as another service sends it. */
export function eventAbout<Desc extends DescMessage>(
  schema: Desc,
  fields: MessageInitShape<Desc>,
  subject: { id: string; tenantId: string },
  at: Date = systemClock.now(),
): CloudEvent {
  const cause = { actor: "test", correlationId: uuidv7() };
  return envelop(schema, fields, { id: uuidv7(), at, subject, aggregateVersion: 1, cause });
}

export function environmentCreated(tenantId: string, of: EnvironmentClass, environmentId = uuidv7()): CloudEvent {
  const fields = { environmentId, projectId: uuidv7(), tenantId, class: of };
  return eventAbout(EnvironmentCreatedSchema, fields, { id: environmentId, tenantId });
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
