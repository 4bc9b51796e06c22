import { IllegalTransition } from "@runtime-cloud/service-kit/errors";
import type { Specification } from "../../generated/prisma/client.ts";
import { advanceSpecification } from "./advance-specification.ts";
import type { Context, ServiceUnit, Tx } from "../context.ts";
import { isBeingApplied, supersedeWaitingRuns } from "./supersede-specification.ts";

/**
 * Takes a version back that nothing was done for, and the runs that wait for it. Read it under the environment's lock.
 * Throws IllegalTransition, also when a run of it changed the environment: a withdrawn version can't be torn down.
 */
export async function withdrawSpecification(
  context: Context,
  unit: ServiceUnit,
  specification: Specification,
): Promise<Specification> {
  if (await isBeingApplied(unit.tx, specification.id)) throw refused(specification, "being-applied");
  const changing = specification.state === "DECLARED" && (await findChangingRun(unit.tx, specification.id));
  if (changing) throw changedEnvironment(specification, changing.id);
  const withdrawn = await advanceSpecification(unit, specification, { type: "withdraw" });
  await supersedeWaitingRuns(context, unit, specification.id, "the specification was withdrawn");
  return withdrawn;
}

/** The newest run that did something, or may have: a step that failed or was never heard of may have left a part. */
function findChangingRun(tx: Tx, specificationId: string): Promise<{ id: string } | null> {
  return tx.provisioningRun.findFirst({
    where: {
      specificationId,
      receipt: { some: { outcome: { in: ["APPLIED", "FAILED", "INDETERMINATE", "DELETED_NOT_RECREATED"] } } },
    },
    orderBy: { queuedAt: "desc" },
    select: { id: true },
  });
}

function changedEnvironment(specification: Specification, runId: string): IllegalTransition {
  const refusal = refused(specification, "changed-the-environment");
  refusal.message += `: run ${runId} of it changed the environment, so plan a TEARDOWN of it or declare a newer version`;
  return refusal;
}

function refused({ id, state }: Specification, reason: string): IllegalTransition {
  return new IllegalTransition({
    aggregate: "DeploymentSpecification",
    id,
    state,
    event: "withdraw",
    reason,
    allowed: [],
  });
}
