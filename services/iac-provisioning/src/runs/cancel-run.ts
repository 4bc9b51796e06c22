import { IllegalTransition } from "@runtime-cloud/service-kit/errors";
import { advanceRun } from "./advance-run.ts";
import type { Context, ServiceUnit } from "../context.ts";
import type { Run } from "./run-row.ts";

/**
 * Asks a run to stop. One that waits ends at once; an engine that works is interrupted by its executor, and may be
 * killed (`force`) once it had its grace. Asking again changes nothing. Throws IllegalTransition.
 */
export async function cancelRun(
  context: Context,
  unit: ServiceUnit,
  run: Run,
  { by, reason, force }: { by: string; reason: string; force: boolean },
): Promise<Run> {
  if (!force) {
    if (run.state === "CANCELLING") return run;
    const event = { type: "cancel" as const, at: unit.at, by, reason: reason === "" ? `by ${by}` : reason };
    return advanceRun(context, unit, run, event);
  }
  if (run.state === "CANCELLING") await refuseBeforeGrace(context, unit, run);
  return advanceRun(context, unit, run, { type: "force", by }, { forceRequested: true });
}

async function refuseBeforeGrace({ settings }: Context, { tx }: ServiceUnit, run: Run): Promise<void> {
  const graceSeconds = settings.CANCEL_GRACE_SECONDS;
  const [grace] = await tx.$queryRaw<{ left: number }[]>`
    SELECT ceil(extract(epoch FROM max(at) + ${graceSeconds} * interval '1 second' - clock_timestamp()))::int AS left
    FROM transition
    WHERE tenant_id = ${run.tenantId} AND aggregate = 'ProvisioningRun' AND aggregate_id = ${run.id}
      AND event = 'cancel'`;
  if (!grace || grace.left <= 0) return;
  throw new IllegalTransition({
    aggregate: "ProvisioningRun",
    id: run.id,
    state: run.state,
    event: "force",
    reason: `the engine has ${grace.left} more seconds to end by itself`,
    allowed: [],
  });
}
