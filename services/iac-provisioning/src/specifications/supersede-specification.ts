import type { Specification } from "../../generated/prisma/client.ts";
import { advanceRun } from "../runs/advance-run.ts";
import { advanceSpecification } from "./advance-specification.ts";
import type { Context, ServiceUnit, Tx } from "../context.ts";
import { unsealed } from "../runs/run-row.ts";

/** A newer version takes the place of this one, and of the runs that wait to plan or apply it. */
export async function supersedeSpecification(
  context: Context,
  unit: ServiceUnit,
  specification: Specification,
  reason: string,
): Promise<void> {
  await advanceSpecification(unit, specification, { type: "supersede" });
  await supersedeWaitingRuns(context, unit, specification.id, reason);
}

/** A run that is being planned now is superseded when its plan is there. */
export async function supersedeWaitingRuns(
  context: Context,
  unit: ServiceUnit,
  specificationId: string,
  reason: string,
): Promise<void> {
  const waiting = await unit.tx.provisioningRun.findMany({
    where: { specificationId, state: { in: ["QUEUED", "AWAITING_APPROVAL", "APPROVED"] } },
    omit: unsealed,
  });
  for (const run of waiting) await advanceRun(context, unit, run, { type: "supersede", at: unit.at, reason });
}

/** Whether an apply of it is under way, or ended nobody knows how: until that is settled it can't be put aside. */
export async function isBeingApplied(tx: Tx, specificationId: string): Promise<boolean> {
  const applying = await tx.provisioningRun.count({
    where: { specificationId, applyingAt: { not: null }, state: { in: ["APPLYING", "CANCELLING", "INDETERMINATE"] } },
  });
  return applying > 0;
}

/** After an apply that came to nothing: a version that could not be superseded meanwhile is now. */
export async function supersedeIfOutdated(context: Context, unit: ServiceUnit, specificationId: string): Promise<void> {
  const specification = await unit.tx.specification.findUniqueOrThrow({ where: { id: specificationId } });
  if (specification.state !== "DECLARED") return;
  const { environmentId, kind, specificationVersion } = specification;
  const newer = await unit.tx.specification.findFirst({
    where: { environmentId, kind, specificationVersion: { gt: specificationVersion }, state: "DECLARED" },
  });
  if (newer) await supersedeSpecification(context, unit, specification, supersededBy(newer));
}

export function supersededBy({ kind, specificationVersion }: Specification): string {
  return `version ${specificationVersion} of the ${kind} specification took its place`;
}
