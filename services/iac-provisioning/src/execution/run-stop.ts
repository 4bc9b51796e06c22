import type { EngineSignals } from "../engines/engine.ts";

/**
 * Why an engine is told to end. CANCELLED and FORCED: on request, and on request again. TIMED_OUT: its phase took too
 * long. EXECUTOR_STOPPED: its process ends. LOST: the lease wasn't renewed, so the run may be somebody else's by now.
 */
export type StopCause = "CANCELLED" | "FORCED" | "TIMED_OUT" | "EXECUTOR_STOPPED" | "LOST";

/** The reason of an engine's signals; the message is a part of a run's `reason`. */
export class EngineStop extends Error {
  override readonly name = "EngineStop";

  constructor(
    readonly why: StopCause,
    message: string,
  ) {
    super(message);
  }
}

/** Why an engine was told to end, if it was. What killed it counts before what interrupted it. */
export function stopOf({ interrupt, kill }: EngineSignals): EngineStop | undefined {
  const reason: unknown = kill.aborted ? kill.reason : interrupt.reason;
  return reason instanceof EngineStop ? reason : undefined;
}
