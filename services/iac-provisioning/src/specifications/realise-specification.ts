import type { Specification } from "../../generated/prisma/client.ts";
import { advanceSpecification } from "./advance-specification.ts";
import type { Context, ServiceUnit } from "../context.ts";
import type { Run } from "../runs/run-row.ts";
import { supersededBy, supersedeSpecification, supersedeWaitingRuns } from "./supersede-specification.ts";

/** What an APPLIED run makes of its specification, and of the one that was in force before. */
export async function realise(context: Context, unit: ServiceUnit, run: Run): Promise<void> {
  const specification = await unit.tx.specification.findUniqueOrThrow({ where: { id: run.specificationId } });
  if (run.mode === "DESTROY") return tornDown(context, unit, specification);
  // It recorded what is there, whether or not that is what was specified.
  if (run.mode === "REFRESH_ONLY") return;

  const applied = await advanceSpecification(unit, specification, { type: "apply", at: unit.at });
  const { environmentId, kind, id } = applied;
  const before = await unit.tx.specification.findMany({
    where: { environmentId, kind, state: "APPLIED", id: { not: id } },
  });
  for (const older of before) await supersedeSpecification(context, unit, older, supersededBy(applied));
}

/** The versions of a kind share one state: with this one, whatever was in force is gone too. */
async function tornDown(context: Context, unit: ServiceUnit, specification: Specification): Promise<void> {
  const { id, environmentId, kind, state } = specification;
  const inForce = await unit.tx.specification.findMany({ where: { environmentId, kind, state: "APPLIED" } });
  if (state === "DECLARED") await advanceSpecification(unit, specification, { type: "withdraw" });
  for (const applied of inForce) await advanceSpecification(unit, applied, { type: "remove" });
  for (const gone of new Set([id, ...inForce.map((applied) => applied.id)])) {
    await supersedeWaitingRuns(context, unit, gone, "the specification was torn down");
  }
}
