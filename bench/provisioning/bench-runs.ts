import type { JsonObject } from "@bufbuild/protobuf";
import {
  ProvisioningKind,
  RunMode,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type { ProvisioningService } from "./provisioning-service.ts";

/** A run that was applied, by `performance.now()`. */
export interface AppliedRun {
  readonly runId: string;
  /** PlanProvisioning was sent. */
  readonly askedAt: number;
  /** A subscriber had ProvisioningApplied. */
  readonly heardAt: number;
}

/** Declares what shall be in an environment that was announced and has nothing yet; no run of it waits for a person. */
export async function declareInNewEnvironment(
  { aside, client, tenantId }: ProvisioningService,
  programVersion: string,
  parameters: JsonObject,
): Promise<string> {
  const environmentId = uuidv7();
  await aside.query("INSERT INTO environment (id, tenant_id, project_id, class) VALUES ($1, $2, $3, 'STAGING')", [
    environmentId,
    tenantId,
    uuidv7(),
  ]);
  const { specification } = await client.declareSpecification({
    environmentId,
    kind: SpecificationKind.BASELINE,
    programVersion,
    parameters,
    idempotencyKey: uuidv7(),
  });
  if (!specification) throw new Error("DeclareSpecification answered without a specification");
  return specification.specificationId;
}

/** Plans a run and waits until it is applied and everybody knows. */
export async function runToApplied(service: ProvisioningService, specificationId: string): Promise<AppliedRun> {
  const askedAt = performance.now();
  const runId = await planRun(service, specificationId, RunMode.APPLY);
  return { runId, askedAt, heardAt: await service.news.applied(runId) };
}

/** Returns the run's id; it is queued. */
export async function planRun(
  { client }: ProvisioningService,
  specificationId: string,
  mode: RunMode,
): Promise<string> {
  const kind = ProvisioningKind.BASELINE;
  const { run } = await client.planProvisioning({ specificationId, kind, mode, idempotencyKey: uuidv7() });
  if (!run) throw new Error("PlanProvisioning answered without a run");
  return run.provisioningRunId;
}
