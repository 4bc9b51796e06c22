import type { JsonObject } from "@bufbuild/protobuf";
import type { RunEvent } from "@runtime-cloud/state-machines/provisioning-run-columns";
import { INTERRUPTED } from "../engines/engine-stopped.ts";
import type { ApplyOutcome, EngineFailure, Planned, PlanOutcome } from "../engines/engine.ts";
import type { Receipt } from "../engines/receipt.ts";
import { jsonObject } from "../json/json-object.ts";
import type { Run } from "../runs/run-row.ts";
import type { EngineStop } from "./run-stop.ts";

/** Outputs that an event carries; an envelope holds 64 KiB in all. The run has all of them. */
const MAX_ANNOUNCED_BYTES = 48 * 1_024;

/** Under which a run's planning ended. */
export interface PlanTerms {
  at: Date;
  expiresAt: Date;
  approvalDue: boolean;
  /** False when a newer version was declared meanwhile, or this one withdrawn: then nothing counts as applied. */
  wanted: boolean;
  stop: EngineStop | undefined;
}

/** What the end of planning means for a run that is PLANNING or CANCELLING. */
export function planEvent(run: Pick<Run, "state">, outcome: PlanOutcome, terms: PlanTerms): RunEvent {
  const { at, expiresAt, approvalDue, wanted, stop } = terms;
  // Nothing was applied, so whatever came of it, it stopped.
  if (run.state === "CANCELLING") return { type: "stopped", at };
  if (outcome.result === "planned") {
    const noChanges = outcome.noChanges && wanted;
    const outputs = announced(outcome.outputs);
    return { type: "plan", at, expiresAt, approvalDue, noChanges, plan: planResult(outcome), outputs };
  }
  const reason = reasonOf(outcome.failure, stop);
  // Nobody asked the run to end: it is this executor that can't go on, and another one plans anew.
  const isHandedBack = (stop?.why === "EXECUTOR_STOPPED" || stop?.why === "LOST") && wasStopped(outcome.failure);
  return isHandedBack ? { type: "loseExecutor", at, reason } : { type: "fail", at, reason };
}

/** What the end of an apply means for a run that is APPLYING or CANCELLING. `stop` is why its engine had to end. */
export function applyEvent(
  run: Pick<Run, "state">,
  { result, failure, outputs }: ApplyOutcome,
  receipt: Receipt,
  at: Date,
  stop?: EngineStop,
): RunEvent {
  if (result === "applied") return { type: "complete", at, outputs: announced(outputs) };
  if (result === "indeterminate") {
    return { type: "loseExecutor", at, ...(failure && { reason: reasonOf(failure, stop) }) };
  }
  const reason = reasonOf(failure ?? UNEXPLAINED, stop);
  if (result === "partially-applied" || receipt.some(wasTouched)) return { type: "completePartially", at, reason };
  const isCancelled = run.state === "CANCELLING" && failure !== undefined && wasStopped(failure);
  return isCancelled ? { type: "stopped", at } : { type: "fail", at, reason };
}

/** `terraform 1.11.4`: what planned a run, and alone may apply it. */
export function engineLabel({ product, version }: Planned["engine"]): string {
  return `${product} ${version}`;
}

function planResult({ engine, planDigest, summary, destructive }: Planned) {
  return { ...summary, engine: engineLabel(engine), planDigest, destructive };
}

/** `<code>: <text>`, the failing resource's address in the text; where the engine was told to end, why it was. */
function reasonOf(failure: EngineFailure, stop: EngineStop | undefined): string {
  const { code, address, message } = failure;
  if (stop && wasStopped(failure)) {
    const more = message === INTERRUPTED.message ? "" : `: ${message}`;
    return `${stop.why === "TIMED_OUT" ? stop.why : code}: ${stop.message}${more}`;
  }
  const subject = address === undefined || message.includes(address) ? "" : `${address}: `;
  return `${code}: ${subject}${message}`;
}

function wasStopped({ code }: EngineFailure): boolean {
  return code === "INTERRUPTED" || code === "KILLED";
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
