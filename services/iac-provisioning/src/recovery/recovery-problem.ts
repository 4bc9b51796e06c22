import type { ReceiptEntry } from "../../generated/prisma/client.ts";
import { SENSITIVE } from "../engines/engine-event.ts";
import type { StateInventory } from "../engines/state-inventory.ts";

/** How what was done to a resource may differ from what the recorded state says. */
export type Problem =
  "CREATED_NOT_RECORDED" | "CHANGE_UNCONFIRMED" | "DELETED_STILL_RECORDED" | "RESULT_UNKNOWN" | undefined;

type Done = Pick<ReceiptEntry, "address" | "actions" | "outcome" | "resourceId">;

/**
 * Compares one entry of a receipt with the recorded state. `isSettled`: that is the state which the run's engine had in
 * the end, so what it says of changes can be believed.
 */
export function recoveryProblem(done: Done, recorded: StateInventory, isSettled: boolean): Problem {
  switch (done.outcome) {
    case "NO_OP":
    case "NOT_ATTEMPTED":
      return undefined;
    case "APPLIED":
      return afterApplied(done, recorded, isSettled);
    case "DELETED_NOT_RECREATED":
      return recorded.has(done.address) ? "DELETED_STILL_RECORDED" : undefined;
    case "FAILED":
      if (isCreatedApart(done, recorded)) return "CREATED_NOT_RECORDED";
      return isSettled ? undefined : unknownUnlessRecorded(done, recorded);
    case "INDETERMINATE":
      return isSettled ? undefined : unknownUnlessRecorded(done, recorded);
  }
}

function afterApplied(done: Done, recorded: StateInventory, isSettled: boolean): Problem {
  const { address, actions } = done;
  if (actions.includes("create")) {
    if (!recorded.has(address) || isCreatedApart(done, recorded)) return "CREATED_NOT_RECORDED";
    return isSettled || actions.length === 1 ? undefined : "CHANGE_UNCONFIRMED";
  }
  if (actions.includes("delete")) return recorded.has(address) ? "DELETED_STILL_RECORDED" : undefined;
  return isSettled ? undefined : "CHANGE_UNCONFIRMED";
}

/** The state knows another object under the address, if any, than the one that was created. */
function isCreatedApart({ address, actions, resourceId }: Done, recorded: StateInventory): boolean {
  if (!actions.includes("create") || resourceId === null || resourceId.includes(SENSITIVE)) return false;
  return !recorded.holds(address, resourceId);
}

/** What was only to be created and is recorded was created; what was only to be deleted and isn't, was deleted. */
function unknownUnlessRecorded({ address, actions }: Done, recorded: StateInventory): Problem {
  const [action, ...others] = actions;
  if (others.length === 0 && action === "create" && recorded.has(address)) return undefined;
  if (others.length === 0 && action === "delete" && !recorded.has(address)) return undefined;
  return "RESULT_UNKNOWN";
}
