import { InvalidProgram } from "../programs/program.ts";
import { EngineUnavailable } from "./engine-unavailable.ts";
import type { EngineFailure, EngineSignals } from "./engine.ts";
import { StateRefused } from "./state-client.ts";

/** Carries an expected failure from deep inside an engine to the verb that returns it. */
export class EngineStopped extends Error {
  override readonly name = "EngineStopped";
  constructor(readonly failure: EngineFailure) {
    super(failure.message);
  }
}

/** The failure that an expected error stands for. Throws the error itself when it is a defect. */
export function failureFor(error: unknown): EngineFailure {
  if (error instanceof EngineStopped) return error.failure;
  if (error instanceof StateRefused) return { code: error.code, message: error.message };
  if (error instanceof InvalidProgram) return { code: "INVALID_PROGRAM", message: error.message };
  if (error instanceof EngineUnavailable) return { code: "ENGINE_UNAVAILABLE", message: error.message };
  throw error;
}

/** Between two steps: throws EngineStopped when the job was asked to end. */
export function stopIfAsked({ interrupt, kill }: EngineSignals): void {
  if (kill.aborted) throw new EngineStopped(KILLED);
  if (interrupt.aborted) throw new EngineStopped(INTERRUPTED);
}

export const INTERRUPTED: EngineFailure = { code: "INTERRUPTED", message: "stopped by an interrupt" };
export const KILLED: EngineFailure = { code: "KILLED", message: "the engine's processes were killed" };
