import type { Cause } from "@runtime-cloud/eventing/cause";
import { continuedCause } from "@runtime-cloud/eventing/continued-cause";
import { CREATE } from "@runtime-cloud/state-machines/lifecycle-edges";
import { provisioningRun } from "@runtime-cloud/state-machines/provisioning-run";
import type { Specification } from "../../generated/prisma/client.ts";
import type { Context, Tx } from "../context.ts";
import { type Run, unsealed } from "../runs/run-row.ts";

/** A run that this executor holds, for as long as its epoch is the run's. */
export interface HeldRun {
  run: Run;
  specification: Specification;
  cause: Cause;
}

/** What an executor was asked to do. */
export interface ExecutorWork {
  runId: string;
  cause: Cause;
  /** Aborts when this process stops. */
  stop: AbortSignal;
}

/** Somebody else holds the run, or it ended: whatever this executor still has to say of it doesn't count. */
export class RunLost extends Error {
  override readonly name = "RunLost";

  constructor({ id, executorEpoch }: Run) {
    super(`run ${id} is no longer held under epoch ${executorEpoch}`);
  }
}

/** Makes the lease of a run that was just taken start, by the database's clock, and returns its end. */
export async function startLease({ settings }: Context, tx: Tx, { id }: Run): Promise<Date> {
  const [row] = await tx.$queryRaw<{ until: Date }[]>`
    UPDATE provisioning_run SET executor_until = clock_timestamp() + ${settings.EXECUTOR_LEASE_SECONDS} * interval '1 second'
    WHERE id = ${id}::uuid RETURNING executor_until AS until`;
  if (!row) throw new Error(`run ${id} went away`);
  return row.until;
}

/** The run as it is now. Throws RunLost when another epoch has begun or nobody has to work on it any more. */
export async function readHeld(tx: Tx, { run }: HeldRun): Promise<Run> {
  const now = await tx.provisioningRun.findFirst({
    where: { id: run.id, executorEpoch: run.executorEpoch, state: { in: ["PLANNING", "APPLYING", "CANCELLING"] } },
    omit: unsealed,
  });
  if (!now) throw new RunLost(run);
  return now;
}

/** The cause of what an executor or a deadline does to a run: the correlation and trace of whoever asked for it go on. */
export async function runCause(
  { client, newId }: { client: Pick<Tx, "$queryRaw">; newId: Context["newId"] },
  { id, tenantId }: Pick<Run, "id" | "tenantId">,
  actor: string,
): Promise<Cause> {
  const asked = { tenantId, aggregate: provisioningRun.id, id, event: CREATE };
  return (await continuedCause(client, asked, actor)) ?? { actor, correlationId: newId() };
}
