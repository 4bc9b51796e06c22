import type { RunColumns, RunEvent } from "./provisioning-run-columns.ts";

/** Why a run stands where it stands, `<CODE>: <text>`: events that say so set it, others leave it. */
export function reasonOf(context: RunColumns, event: RunEvent): string | null {
  switch (event.type) {
    case "fail":
    case "completePartially":
      return event.reason;
    case "reject":
      return `REJECTED: ${event.reason}`;
    case "supersede":
      return `SUPERSEDED: ${event.reason}`;
    case "cancel":
      return `CANCELLED: ${event.reason}`;
    case "expire":
      return "EXPIRED: the plan was neither decided nor applied in time";
    case "complete":
      return null;
    case "loseExecutor":
      // Nothing was applied: it ends as it was asked to.
      if (context.applyingAt === null) return context.reason;
      return event.reason ?? "EXECUTOR_LOST: the executor ended without saying how far it got";
    case "resolve":
      return `RESOLVED: ${event.resolution}`;
    default:
      return context.reason;
  }
}
