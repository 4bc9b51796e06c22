import { create } from "@bufbuild/protobuf";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import {
  type AppliedSpecification,
  type InspectEnvironmentResponse,
  InspectEnvironmentResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { Context } from "@runtime-cloud/runtime-environment/context";
import { registerObservationMetrics } from "@runtime-cloud/runtime-environment/observing/observation-metrics";
import { kubernetesAccess } from "@runtime-cloud/runtime-environment/observers/kubernetes/kubernetes-access";
import { settings as settingsOf } from "@runtime-cloud/runtime-environment/settings";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { openDatabase } from "@runtime-cloud/service-kit/database";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import { Registry } from "prom-client";
import { PrismaClient } from "../../services/runtime-environment/generated/prisma/client.ts";
import { SELDOM } from "./environment-servers.ts";

/** What looks in this process, for parts of a look that can't be told apart from outside. */
export interface EnvironmentContext {
  readonly context: Context;
  close(): Promise<void>;
}

export interface Engine {
  /** What is applied in an environment, and there; undefined: nothing. */
  inspect(environmentId: string): AppliedSpecification | undefined;
  /** The service has the whole answer. */
  answered(): void;
}

/** RuntimeEnvironmentService without its API, queues and deadlines; the engine's answers go through the real encoding. */
export function openEnvironmentContext(databaseUrl: string, engine: Engine): EnvironmentContext {
  const logger = createLogger({ service: "bench", level: "warn", pretty: true, destination: process.stderr });
  const database = openDatabase(
    {
      url: databaseUrl,
      applicationName: "bench",
      // One after the other looks, and PostgreSQL's counters are had from the connection that wrote.
      maxConnections: 1,
      onError: (err) => logger.warn({ err }, "a connection broke"),
    },
    (adapter) => new PrismaClient({ adapter }),
  );
  const settings = settingsOf.parse({
    DATABASE_URL: databaseUrl,
    REDIS_URL: "redis://unused",
    SUBSCRIBERS: "RuntimeEnvironmentService",
    ...SELDOM,
  });
  const kubernetes = kubernetesAccess({ settings, logger, onChange: async () => undefined });
  const { client, pool } = database;
  const context: Context = {
    client,
    pool,
    settings,
    clock: systemClock,
    newId: uuidv7,
    logger,
    announced: () => undefined,
    arm: async () => undefined,
    enqueue: async () => undefined,
    provisioning: { rpc: inspecting(engine), close: () => undefined },
    kubernetes,
    measures: registerObservationMetrics(new Registry()),
  };
  return {
    context,
    async close() {
      await kubernetes.close();
      await database.close();
    },
  };
}

function inspecting({ inspect, answered }: Engine): Context["provisioning"]["rpc"] {
  const transport = createRouterTransport((router) =>
    router.service(IaCProvisioningService, {
      inspectEnvironment({ environmentId }) {
        const applied = inspect(environmentId);
        return create(InspectEnvironmentResponseSchema, { specifications: applied ? [applied] : [] });
      },
    }),
  );
  const client = createClient(IaCProvisioningService, transport);
  return {
    ...client,
    async inspectEnvironment(request, options): Promise<InspectEnvironmentResponse> {
      const answer = await client.inspectEnvironment(request, options);
      answered();
      return answer;
    },
  };
}
