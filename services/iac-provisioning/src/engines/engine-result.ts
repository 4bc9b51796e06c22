import type { ChangeAction, PlannedChange } from "./engine-event.ts";
import type { ApplyOutcome, EngineFailure, EngineRefusal, PlanSummary } from "./engine.ts";

export function refuse(failure: EngineFailure): EngineRefusal {
  return { result: "failed", failure };
}

export function applyFailed(result: ApplyOutcome["result"], failure: EngineFailure): ApplyOutcome {
  return { result, outputs: {}, sensitiveOutputs: {}, failure };
}

/** A create that leaves its predecessor be (`create, forget`) is an add. What is forgotten is neither changed nor deleted. */
export function summarize(changes: readonly PlannedChange[]): PlanSummary {
  const count = (matches: (actions: readonly ChangeAction[]) => boolean) =>
    changes.filter(({ actions }) => matches(actions)).length;
  const isReplace = (actions: readonly ChangeAction[]) => actions.includes("create") && actions.includes("delete");
  return {
    adds: count((actions) => actions.includes("create") && !isReplace(actions)),
    changes: count((actions) => actions.includes("update")),
    deletes: count((actions) => actions.includes("delete") && !isReplace(actions)),
    replaces: count(isReplace),
  };
}

export function isDestructive(changes: readonly PlannedChange[]): boolean {
  return changes.some(({ actions }) => actions.includes("delete"));
}

/** No-ops and reads change nothing in the world. */
export function changesSomething({ actions }: PlannedChange): boolean {
  return actions.some((action) => action !== "no-op" && action !== "read");
}

/** What is only moved or taken in counts nowhere, but an apply has to record it. */
export function changesState(change: PlannedChange): boolean {
  return changesSomething(change) || change.previousAddress !== undefined || change.importId !== undefined;
}
