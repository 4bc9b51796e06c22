import type { Diagnostic } from "../engine-event.ts";
import type { EngineFailure, EngineSignals } from "../engine.ts";
import { INTERRUPTED, KILLED } from "../engine-stopped.ts";
import { plainLine } from "../redaction/plain-text.ts";
import { sandboxFailure } from "../sandbox/sandbox-failure.ts";
import type { Exit } from "../sandbox/subprocess.ts";
import { meaningOf, withoutAdvice } from "./terraform-meanings.ts";
import { PARAMETERS_FILE } from "./terraform-workspace.ts";

/** Where the CLI says what a value didn't suit. */
const DECLARED = /declared at ([^\s:]+):(\d+)/;

/**
 * Why a command ended without success. What the job was told comes first, for the exit code of an interrupted command
 * is that of a failed one; then the first error that names a resource, then the first error. The message begins with
 * the place in the program where there is one: `main.tf line 12: Unsupported argument: …`.
 */
export function terraformFailure(
  exit: Exit,
  diagnostics: readonly Diagnostic[],
  signals: EngineSignals,
): EngineFailure {
  if (signals.kill.aborted) return KILLED;
  const limited = sandboxFailure(exit, diagnostics);
  if (limited) return limited;
  if (exit.signal !== null) return KILLED;
  if (signals.interrupt.aborted) return INTERRUPTED;
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  const cause = errors.find(({ address }) => address !== undefined) ?? errors.find(isPlaced) ?? errors[0];
  if (!cause)
    return { code: "ENGINE_ERROR", message: `the engine ended with exit code ${exit.code} and no diagnostic` };

  const { code, wayOut } = meaningOf(cause);
  const parts = [placeOf(cause), cause.summary, withoutAdvice(cause.detail), wayOut];
  const message = plainLine(parts.filter(isSaid).join(": "));
  return { code, message, ...(cause.address === undefined ? {} : { address: cause.address }) };
}

/** `init` ends its errors with one that only says that there are errors, or begins with it. */
function isPlaced({ location }: Diagnostic): boolean {
  return location !== undefined;
}

/** A value's own place is in a file that nobody but this service wrote: then it is where its variable is declared. */
function placeOf({ location, detail }: Diagnostic): string | undefined {
  if (!location?.startsWith(PARAMETERS_FILE)) return location;
  const [, file, line] = DECLARED.exec(detail) ?? [];
  return file === undefined ? undefined : `${file} line ${line}`;
}

function isSaid(part: string | undefined): part is string {
  return part !== undefined && part !== "";
}
