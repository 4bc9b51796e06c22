import { commit } from "@runtime-cloud/eventing/commit";
import { begin } from "@runtime-cloud/eventing/decision";
import { IllegalTransition, InvalidInput } from "@runtime-cloud/service-kit/errors";
import { provisioningRun } from "@runtime-cloud/state-machines/provisioning-run";
import type { Environment, ProvisioningKind, RunMode, Specification } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { lockEnvironment } from "../environments/lock-environment.ts";
import { runViolations } from "./run-modes.ts";
import { enqueueReady } from "./run-queue.ts";
import { type Run, unsealed } from "./run-row.ts";

export interface RunRequest {
  specification: Specification;
  kind: ProvisioningKind;
  mode: RunMode;
  requestedBy: string;
  promotionId?: string;
  approvalId?: string;
  /** One proposal has one run: asking again returns it. */
  proposalId?: string;
}

/** Queues a run. Throws InvalidInput, and IllegalTransition for a specification that is no longer wanted. */
export async function planRun(context: Context, unit: ServiceUnit, request: RunRequest): Promise<Run> {
  const { specification, kind, mode } = request;
  const violations = runViolations(kind, mode, specification.kind);
  if (violations.length > 0) throw new InvalidInput(violations);

  const environment = await lockEnvironment(unit.tx, specification.tenantId, specification.environmentId);
  const planned = await runOfProposal(unit, request);
  if (planned) return planned;
  await refuseUnwanted(unit, specification);

  const row = newRun(unit, request, environment);
  const queuedAt = await transactionNow(unit.tx);
  const run = await commit(unit, begin(provisioningRun, row), ({ state }) =>
    unit.tx.provisioningRun.create({ data: { ...row, queuedAt, state }, omit: unsealed }),
  );
  unit.after(async () => {
    await enqueueReady(context, run.environmentId);
  });
  return run;
}

async function runOfProposal(unit: ServiceUnit, { specification, proposalId }: RunRequest): Promise<Run | null> {
  if (proposalId === undefined) return null;
  return unit.tx.provisioningRun.findFirst({
    where: { tenantId: specification.tenantId, proposalId },
    omit: unsealed,
  });
}

/** Read again under the environment's lock: a newer version may have come meanwhile. */
async function refuseUnwanted(unit: ServiceUnit, { id }: Specification): Promise<void> {
  const { state } = await unit.tx.specification.findUniqueOrThrow({ where: { id }, select: { state: true } });
  if (state === "DECLARED" || state === "APPLIED") return;
  throw new IllegalTransition({
    aggregate: "DeploymentSpecification",
    id,
    state,
    event: "plan",
    reason: "not-in-this-state",
    allowed: [],
  });
}

function newRun(unit: ServiceUnit, request: RunRequest, environment: Environment) {
  const { specification, kind, mode, requestedBy, promotionId, approvalId, proposalId } = request;
  return {
    id: unit.newId(),
    tenantId: specification.tenantId,
    projectId: specification.projectId,
    environmentId: specification.environmentId,
    kind,
    mode,
    specificationId: specification.id,
    specificationVersion: specification.specificationVersion,
    promotionId: promotionId ?? null,
    approvalId: approvalId ?? null,
    proposalId: proposalId ?? null,
    requestedBy,
    separateApprover: environment.class === "PRODUCTION",
    engine: null,
    planDigest: null,
    adds: 0,
    changes: 0,
    deletes: 0,
    replaces: 0,
    destructive: false,
    reason: null,
    decidedBy: null,
    executorEpoch: 0,
    executorId: null,
    plannedAt: null,
    applyingAt: null,
    endedAt: null,
    expiresAt: null,
  };
}
