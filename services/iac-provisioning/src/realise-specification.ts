import { advanceSpecification } from "./advance-specification.ts";
import type { Context, ServiceUnit } from "./context.ts";
import type { Run } from "./run-row.ts";
import { supersededBy, supersedeSpecification, supersedeWaitingRuns } from "./supersede-specification.ts";

/** What an APPLIED run makes of its specification, and of the one that was in force before. */
export async function realise(context: Context, unit: ServiceUnit, run: Run): Promise<void> {
  const specification = await unit.tx.specification.findUniqueOrThrow({ where: { id: run.specificationId } });
  if (run.mode === "DESTROY") {
    const event = specification.state === "APPLIED" ? ("remove" as const) : ("withdraw" as const);
    await advanceSpecification(unit, specification, { type: event });
    return supersedeWaitingRuns(context, unit, specification.id, "the specification was torn down");
  }
  // It recorded what is there, whether or not that is what was specified.
  if (run.mode === "REFRESH_ONLY") return;

  const applied = await advanceSpecification(unit, specification, { type: "apply", at: unit.at });
  const { environmentId, kind, id } = applied;
  const before = await unit.tx.specification.findMany({
    where: { environmentId, kind, state: "APPLIED", id: { not: id } },
  });
  for (const older of before) await supersedeSpecification(context, unit, older, supersededBy(applied));
}
