import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import {
  type AdoptObservedRequest,
  AdoptObservedResponseSchema,
  AppliedSpecificationSchema,
  type InspectEnvironmentResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type {
  GetPlanResponseSchema,
  PlanProvisioningRequest,
} from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import { SpecificationSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/specifications_pb";
import { RunState, SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { tenantHeader } from "@runtime-cloud/service-kit/auth";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { serve, type Server } from "@runtime-cloud/service-kit/serve";

export type Applied = MessageInitShape<typeof AppliedSpecificationSchema>;

/** A real gRPC server in the place of IaCProvisioningService: it says what a test tells it to. */
export interface ProvisioningServer {
  url: string;
  /** What InspectEnvironment answers, by environment; an error is thrown. */
  applied: Map<string, MessageInitShape<typeof InspectEnvironmentResponseSchema>["specifications"] | ConnectError>;
  /** Every run that was planned, once for each idempotency key. */
  planned: PlanProvisioningRequest[];
  /** Set: PlanProvisioning refuses with it. */
  refusal: ConnectError | undefined;
  /** How runs are, by id; QUEUED unless set. */
  runs: Map<string, { state: RunState; reason?: string }>;
  /** The state that a run has as soon as it is planned. */
  firstState: RunState;
  /** What GetPlan answers, by run; nothing to do unless set. */
  plans: Map<string, MessageInitShape<typeof GetPlanResponseSchema>>;
  /** What AdoptObserved answers; an error is thrown. */
  adoption: MessageInitShape<typeof AdoptObservedResponseSchema> | ConnectError;
  /** Every version that was declared by AdoptObserved, once for each idempotency key, and its id. */
  adopted: { specificationId: string; request: AdoptObservedRequest }[];
  /** What GetSpecification says that a specification's parameters are. */
  parameters: JsonObject;
  /** Called while InspectEnvironment is under way: what it answers is as it was before. */
  whileInspecting: () => Promise<void>;
  /** Called while PlanProvisioning is under way, with the run's id. */
  whilePlanning: (runId: string) => Promise<void>;
  /** What came along with the last call for each tenant. */
  headers: Map<string, { correlationId: string | null; traceparent: string | null }>;
  down(): Promise<void>;
  up(): Promise<void>;
}

export async function startProvisioning(): Promise<ProvisioningServer> {
  const runIds = new Map<string, string>();
  let port = 0;
  let server: Server | undefined;

  const up = async () => {
    server = await serve({
      host: "127.0.0.1",
      port,
      interceptors: [],
      services: [IaCProvisioningService.typeName],
      logger: silentLogger(),
      graceMs: 200,
      routes: (router) =>
        router.service(IaCProvisioningService, {
          async inspectEnvironment({ environmentId }, call) {
            remember(call);
            const applied = provisioning.applied.get(environmentId);
            await provisioning.whileInspecting();
            if (applied instanceof ConnectError) throw applied;
            if (!applied) throw new ConnectError(`environment ${environmentId} does not exist`, Code.NotFound);
            return { specifications: applied };
          },
          async planProvisioning(request, call) {
            remember(call);
            if (provisioning.refusal) throw provisioning.refusal;
            const known = runIds.get(request.idempotencyKey);
            const provisioningRunId = known ?? uuidv7();
            if (!known) {
              provisioning.planned.push(request);
              provisioning.runs.set(provisioningRunId, { state: provisioning.firstState });
            }
            runIds.set(request.idempotencyKey, provisioningRunId);
            await provisioning.whilePlanning(provisioningRunId);
            return { run: { provisioningRunId, state: RunState.QUEUED } };
          },
          getPlan({ provisioningRunId }, call) {
            remember(call);
            const planDigest = `sha256:${"d".repeat(64)}`;
            return provisioning.plans.get(provisioningRunId) ?? { planDigest, summary: {}, changes: [] };
          },
          adoptObserved(request, call) {
            remember(call);
            const { adoption, adopted } = provisioning;
            if (adoption instanceof ConnectError) throw adoption;
            const said = create(AdoptObservedResponseSchema, adoption);
            if (request.dryRun || said.refusals.length > 0) return said;
            const known = adopted.find((each) => each.request.idempotencyKey === request.idempotencyKey);
            const specificationId = known?.specificationId ?? uuidv7();
            if (!known) adopted.push({ specificationId, request });
            said.specification = create(SpecificationSchema, { specificationId });
            return said;
          },
          getSpecification({ specificationId }, call) {
            remember(call);
            return { specification: { specificationId, parameters: provisioning.parameters } };
          },
          getProvisioningRun({ provisioningRunId }, call) {
            remember(call);
            const run = provisioning.runs.get(provisioningRunId);
            if (!run) throw new ConnectError(`run ${provisioningRunId} does not exist`, Code.NotFound);
            return { run: { provisioningRunId, ...run } };
          },
        }),
    });
    port = server.port;
    provisioning.url = server.url;
  };
  const remember = ({ requestHeader }: HandlerContext) => {
    provisioning.headers.set(requestHeader.get(tenantHeader) ?? "", {
      correlationId: requestHeader.get("x-correlation-id"),
      traceparent: requestHeader.get("traceparent"),
    });
  };
  const provisioning: ProvisioningServer = {
    url: "",
    applied: new Map(),
    planned: [],
    refusal: undefined,
    runs: new Map(),
    firstState: RunState.QUEUED,
    plans: new Map(),
    adoption: { parameters: {}, refusals: [] },
    adopted: [],
    parameters: {},
    whileInspecting: () => Promise.resolve(),
    whilePlanning: () => Promise.resolve(),
    headers: new Map(),
    async down() {
      await server?.drain();
      server = undefined;
    },
    up,
  };
  await up();
  return provisioning;
}

/** A specification that is applied as declared, with one resource; `changes` says what is different. */
export function applied(changes: Omit<Applied, "$typeName"> = {}): Applied {
  const kind = changes.kind ?? SpecificationKind.BASELINE;
  return create(AppliedSpecificationSchema, {
    specificationId: uuidv7(),
    kind,
    version: 1,
    resources: [{ address: "terraform_data.app", resourceType: "terraform_data", resourceId: "app-1" }],
    ...changes,
  });
}
