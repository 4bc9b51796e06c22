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

/**
 * The receipt of an apply that goes on: give it the engine's events in order. At any point it is the truth as far as it
 * was heard, so a journal of its entries survives the executor: what began and did not end reads INDETERMINATE. An
 * event costs the same whatever the plan's size.
 */
export interface OpenReceipt {
  /** Takes in an event. The place of the entry that it changed, if it changed one. */
  take(event: EngineEvent): number | undefined;
  /** All is applied: what the engine does without a word (it forgets) is done too. The places that changed. */
  complete(): number[];
  /** What an event may have changed, at its place. */
  entry(place: number): ReceiptEntry | undefined;
  entries(): Receipt;
}

export function openReceipt(changes: readonly PlannedChange[]): OpenReceipt {
  const entries = changes.map(planned);
  const places = placesByAddress(changes);
  return {
    take(event) {
      const address = addressOf(event);
      const place = address === undefined ? undefined : placeFor(entries, places.get(address) ?? [], event);
      const entry = place === undefined ? undefined : entries[place];
      if (place === undefined || !entry) return undefined;
      const next = foldEntry(entry, event);
      entries[place] = next;
      return next === entry ? undefined : place;
    },
    complete: () =>
      entries.flatMap((entry, place) => {
        if (entry.outcome !== "NOT_ATTEMPTED" || !entry.actions.every((action) => action === "forget")) return [];
        entries[place] = { ...entry, outcome: "APPLIED", done: entry.actions };
        return [place];
      }),
    entry: (place) => entries[place],
    entries: () => [...entries],
  };
}

/** The receipt after events in their order. */
export function receiptOf(changes: readonly PlannedChange[], events: readonly EngineEvent[]): Receipt {
  const receipt = openReceipt(changes);
  for (const event of events) receipt.take(event);
  return receipt.entries();
}

function planned({ address, resourceType, actions }: PlannedChange): ReceiptEntry {
  const outcome = changesNothing(actions) ? "NO_OP" : "NOT_ATTEMPTED";
  return { address, resourceType, actions, outcome, done: [], durationMs: 0 };
}

/** Two changes have one address where a replacement left an object behind: the live one's and the deposed one's. */
function placesByAddress(changes: readonly PlannedChange[]): ReadonlyMap<string, number[]> {
  const places = new Map<string, number[]>();
  for (const [place, { address }] of changes.entries()) {
    const known = places.get(address);
    if (known) known.push(place);
    else places.set(address, [place]);
  }
  return places;
}

/** The engine doesn't say which of an address's objects it means; what it does tells the one whose next step that is. */
function placeFor(entries: Receipt, candidates: readonly number[], event: EngineEvent): number | undefined {
  if (candidates.length <= 1) return candidates[0];
  const means = (expected: (entry: ReceiptEntry) => boolean) =>
    candidates.find((place) => {
      const entry = entries[place];
      return entry !== undefined && expected(entry);
    });
  if (event.type === "diagnostic") return means(({ outcome }) => outcome === "FAILED") ?? candidates[0];
  const { action } = "action" in event ? event : { action: undefined };
  const isNext = ({ actions, done }: ReceiptEntry) => actions[done.length] === action;
  const begins = event.type === "resource-started";
  return means((entry) => isNext(entry) && (entry.outcome === "INDETERMINATE") !== begins) ?? means(isNext);
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
