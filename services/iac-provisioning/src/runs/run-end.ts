import { provisioningRun } from "@runtime-cloud/state-machines/provisioning-run";
import type { RunState } from "../../generated/prisma/client.ts";

/** Whether nothing more becomes of a run. An INDETERMINATE one isn't over: its operator has yet to resolve it. */
export function isOver(state: RunState): boolean {
  return provisioningRun.states[state]?.type === "final";
}

/** Whether no executor works on a run or is about to: it is over, or somebody has to decide something first. */
export function isAtRest(state: RunState): boolean {
  return isOver(state) || state === "AWAITING_APPROVAL" || state === "INDETERMINATE";
}

/** Whether an executor holds a run. */
export function isHeld(state: RunState): boolean {
  return state === "PLANNING" || state === "APPLYING" || state === "CANCELLING";
}
