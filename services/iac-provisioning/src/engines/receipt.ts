import type { ChangeAction, Diagnostic, EngineEvent, PlannedChange } from "./engine-event.ts";

/**
 * NOT_ATTEMPTED: never reached. NO_OP: nothing to do. APPLIED: every step done. FAILED: the engine says so.
 * INDETERMINATE: a step began and its end was never heard. DELETED_NOT_RECREATED: a replacement that stopped halfway.
 */
export type ResourceOutcome =
  "NOT_ATTEMPTED" | "NO_OP" | "APPLIED" | "FAILED" | "INDETERMINATE" | "DELETED_NOT_RECREATED";

/** What an apply did to one resource. Plain JSON. */
export interface ReceiptEntry {
  readonly address: string;
  readonly resourceType: string;
  readonly actions: readonly ChangeAction[];
  readonly outcome: ResourceOutcome;
  /** Steps that were done, in order: with `actions` it tells how far a replacement came. */
  readonly done: readonly ChangeAction[];
  readonly id?: string;
  readonly diagnostic?: Diagnostic;
  /** Of all its steps together. */
  readonly durationMs: number;
}

/** One entry per planned change, in the plan's order. */
export type Receipt = readonly ReceiptEntry[];

/** The receipt before anything was done. */
export function plannedReceipt(changes: readonly PlannedChange[]): Receipt {
  return changes.map(({ address, resourceType, actions }) => ({
    address,
    resourceType,
    actions,
    outcome: changesNothing(actions) ? "NO_OP" : "NOT_ATTEMPTED",
    done: [],
    durationMs: 0,
  }));
}

/**
 * The receipt after one more event; fold an apply's events in order. At any point it is the truth as far as it was
 * heard, so a journal of events survives the executor: what began and did not end reads INDETERMINATE.
 */
export function foldReceipt(receipt: Receipt, event: EngineEvent): Receipt {
  const address = addressOf(event);
  if (address === undefined) return receipt;
  return receipt.map((entry) => (entry.address === address ? foldEntry(entry, event) : entry));
}

function foldEntry(entry: ReceiptEntry, event: EngineEvent): ReceiptEntry {
  switch (event.type) {
    case "resource-started":
      return { ...entry, outcome: "INDETERMINATE" };
    case "resource-applied": {
      const done = [...entry.done, event.action];
      const durationMs = entry.durationMs + event.durationMs;
      const id = event.id === undefined ? {} : { id: event.id };
      return { ...entry, ...id, done, durationMs, outcome: outcomeAfter(entry.actions, done) };
    }
    case "resource-failed":
      return {
        ...entry,
        durationMs: entry.durationMs + event.durationMs,
        outcome: isHalfReplaced(entry.done) ? "DELETED_NOT_RECREATED" : "FAILED",
      };
    case "diagnostic":
      return event.diagnostic.severity === "error" ? { ...entry, diagnostic: event.diagnostic } : entry;
    default:
      return entry;
  }
}

/** A replacement that created first and has not deleted yet reads FAILED: the old object is still there. */
function outcomeAfter(actions: readonly ChangeAction[], done: readonly ChangeAction[]): ResourceOutcome {
  if (done.length >= actions.length) return "APPLIED";
  return isHalfReplaced(done) ? "DELETED_NOT_RECREATED" : "FAILED";
}

function isHalfReplaced(done: readonly ChangeAction[]): boolean {
  return done.length === 1 && done[0] === "delete";
}

function changesNothing(actions: readonly ChangeAction[]): boolean {
  return actions.every((action) => action === "no-op" || action === "read");
}

function addressOf(event: EngineEvent): string | undefined {
  switch (event.type) {
    case "resource-started":
    case "resource-applied":
    case "resource-failed":
      return event.address;
    case "diagnostic":
      return event.diagnostic.address;
    default:
      return undefined;
  }
}
