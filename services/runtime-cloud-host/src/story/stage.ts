import { type Client, createClient } from "@connectrpc/connect";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import type { ServiceName } from "@runtime-cloud/migrations/services";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { type NewId, uuidv7 } from "@runtime-cloud/service-kit/ids";
import type { LocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import pg from "pg";
import { type Audience, startAudience } from "./audience.ts";
import { type ControlPlane, controlPlane } from "./control-plane.ts";
import { type Narrator, narrator } from "./narrator.ts";

/** What the story is played on: real services, their databases, and the inboxes around them. */
export interface Stage {
  tenantId: string;
  projectId: string;
  /** By the operator who asks for things. */
  provisioning: Client<typeof IaCProvisioningService>;
  capacity: Client<typeof ExecutionCapacityService>;
  environments: Client<typeof RuntimeEnvironmentService>;
  /** By another person, who approves. */
  approver: Client<typeof IaCProvisioningService>;
  databases: Record<ServiceName, pg.Pool>;
  controlPlane: ControlPlane;
  audience: Audience;
  /** Where the manifests engine writes. */
  targetsDir: string;
  /** Which programs the engine at hand can run. */
  programs: { baseline: string; broken: string; engine: string };
  newId: NewId;
  narrator: Narrator;
  close(): Promise<void>;
}

export interface StageOptions {
  urls: Record<ServiceName, string>;
  databaseUrls: Record<ServiceName, string>;
  /** Queues of the same Redis and prefix as the services'. The caller closes it. */
  backend: QueueBackend;
  issuer: LocalIssuer;
  targetsDir: string;
  programs: Stage["programs"];
  print: (line: string) => void;
}

export async function setStage(options: StageOptions): Promise<Stage> {
  const { urls, databaseUrls, backend, issuer } = options;
  const tenantId = `tenant-${uuidv7().slice(-6)}`;
  const tokenOf = (subject: string) => issuer.issue({ subject, tenant: tenantId, scopes: allScopes });
  const operator = await tokenOf("operator");
  const approver = await tokenOf("approver");
  const to = (service: ServiceName, token: string) =>
    createGrpcJsTransport({ address: new URL(urls[service]).host, token: () => token });
  const transports = {
    provisioning: to("iac-provisioning", operator),
    capacity: to("execution-capacity", operator),
    environments: to("runtime-environment", operator),
    approver: to("iac-provisioning", approver),
  };
  const pool = (service: ServiceName) => new pg.Pool({ connectionString: databaseUrls[service], max: 2 });
  const databases = {
    "iac-provisioning": pool("iac-provisioning"),
    "execution-capacity": pool("execution-capacity"),
    "runtime-environment": pool("runtime-environment"),
  };
  return {
    tenantId,
    projectId: uuidv7(),
    provisioning: createClient(IaCProvisioningService, transports.provisioning),
    capacity: createClient(ExecutionCapacityService, transports.capacity),
    environments: createClient(RuntimeEnvironmentService, transports.environments),
    approver: createClient(IaCProvisioningService, transports.approver),
    databases,
    controlPlane: controlPlane(backend, systemClock, uuidv7),
    audience: startAudience(backend),
    targetsDir: options.targetsDir,
    programs: options.programs,
    newId: uuidv7,
    narrator: narrator(options.print, () => systemClock.now().getTime()),
    async close() {
      for (const transport of Object.values(transports)) transport.close();
      await Promise.all(Object.values(databases).map((database) => database.end()));
    },
  };
}
