import type { JsonObject } from "@bufbuild/protobuf";
import type { RunEvent } from "@runtime-cloud/state-machines/provisioning-run-columns";
import type { ApplyOutcome, EngineFailure, Planned, PlanOutcome } from "./engines/engine.ts";
import type { Receipt } from "./engines/receipt.ts";
import { jsonObject } from "./json-object.ts";
import type { Run } from "./run-row.ts";

/** Outputs that an event carries; an envelope holds 64 KiB in all. The run has all of them. */
const MAX_ANNOUNCED_BYTES = 48 * 1_024;

/** What the end of planning means for a run that is PLANNING or CANCELLING. */
export function planEvent(
  run: Pick<Run, "state">,
  outcome: PlanOutcome,
  { at, ...terms }: { at: Date; expiresAt: Date; approvalDue: boolean },
): RunEvent {
  // Nothing was applied, so whatever came of it, it stopped.
  if (run.state === "CANCELLING") return { type: "stopped", at };
  if (outcome.result === "planned") {
    const { noChanges } = outcome;
    return { type: "plan", at, ...terms, noChanges, plan: planResult(outcome), outputs: announced(outcome.outputs) };
  }
  // Nobody asked the run to end: this executor stops, and another one plans anew.
  if (outcome.failure.code === "INTERRUPTED") return { type: "loseExecutor", at };
  return { type: "fail", at, reason: reasonOf(outcome.failure) };
}

/** What the end of an apply means for a run that is APPLYING or CANCELLING. */
export function applyEvent(run: Pick<Run, "state">, outcome: ApplyOutcome, receipt: Receipt, at: Date): RunEvent {
  const { result, failure = UNEXPLAINED } = outcome;
  if (result === "applied") return { type: "complete", at, outputs: announced(outcome.outputs) };
  if (result === "indeterminate") return { type: "loseExecutor", at };
  const reason = reasonOf(failure);
  if (result === "partially-applied" || receipt.some(wasTouched)) return { type: "completePartially", at, reason };
  const wasStopped = failure.code === "INTERRUPTED" || failure.code === "KILLED";
  return run.state === "CANCELLING" && wasStopped ? { type: "stopped", at } : { type: "fail", at, reason };
}

/** `terraform 1.11.4`: what planned a run, and alone may apply it. */
export function engineLabel({ product, version }: Planned["engine"]): string {
  return `${product} ${version}`;
}

function planResult({ engine, planDigest, summary, destructive }: Planned) {
  return { ...summary, engine: engineLabel(engine), planDigest, destructive };
}

/** `<code>: <text>`, the failing resource's address in the text. */
function reasonOf({ code, address, message }: EngineFailure): string {
  const subject = address === undefined || message.includes(address) ? "" : `${address}: `;
  return `${code}: ${subject}${message}`;
}

function wasTouched({ outcome }: Receipt[number]): boolean {
  return outcome === "APPLIED" || outcome === "DELETED_NOT_RECREATED";
}

/** The smallest outputs first, as many as fit. */
function announced(outputs: object): JsonObject {
  const entries = Object.entries(jsonObject(outputs)).map((entry) => ({ entry, size: JSON.stringify(entry).length }));
  entries.sort((a, b) => a.size - b.size);
  let left = MAX_ANNOUNCED_BYTES;
  return Object.fromEntries(entries.flatMap(({ entry, size }) => ((left -= size) >= 0 ? [entry] : [])));
}

const UNEXPLAINED: EngineFailure = { code: "ENGINE_ERROR", message: "the engine ended without saying why" };
