import type { Specification } from "../../generated/prisma/client.ts";
import type { Context, Tx } from "../context.ts";
import { type DesiredState, openDesiredState } from "../specifications/desired-state.ts";
import { stateKeyOf } from "./engine-job.ts";
import type { StateIdentity } from "../engines/engine.ts";
import { failureFor } from "../engines/engine-stopped.ts";
import { engineLabel } from "./run-outcome.ts";
import type { Run } from "../runs/run-row.ts";

/** What a plan depends on, as it is now. */
export interface Ground {
  desired: { program: { digest: string }; contentDigest: string };
  /** `terraform 1.11.4`. */
  engine: string;
  state: StateIdentity;
}

/** Why a plan no longer holds; undefined when it does. */
export function whyStale(
  run: Pick<Run, "engine" | "stateLineage" | "stateSerial">,
  specification: Pick<Specification, "state" | "programDigest" | "contentDigest">,
  { desired, engine, state }: Ground,
): string | undefined {
  if (specification.state !== "DECLARED" && specification.state !== "APPLIED") {
    return `the specification is ${specification.state}`;
  }
  if (desired.program.digest !== specification.programDigest)
    return "the program's content has changed since it was declared";
  if (desired.contentDigest !== specification.contentDigest) return "the parameters are not those that were declared";
  if (engine !== run.engine) return `it was planned by ${run.engine}, and ${engine} would apply it`;
  if (state.lineage !== run.stateLineage || BigInt(state.serial) !== run.stateSerial) {
    return `it was made from serial ${run.stateSerial} of the engine's state, which is now at serial ${state.serial}`;
  }
  return undefined;
}

/** The part of the ground that lies outside the database. */
export type Survey = { found: true; desired: DesiredState; engine: string } | { found: false; reason: string };

export async function surveyGround(context: Context, specification: Specification): Promise<Survey> {
  try {
    const desired = await openDesiredState(context, specification);
    const engine = engineLabel(await context.engines[desired.program.engine].version());
    return { found: true, desired, engine };
  } catch (error) {
    return { found: false, reason: failureFor(error).message };
  }
}

/** Read in the transaction that starts the apply. */
export async function readStateIdentity(tx: Tx, specification: Specification): Promise<StateIdentity> {
  const state = await tx.engineState.findUnique({ where: { tenantId_environmentId_kind: stateKeyOf(specification) } });
  if (!state || state.removedAt || state.lineage === null) return { lineage: "", serial: 0 };
  return { lineage: state.lineage, serial: state.serial ?? 0 };
}
