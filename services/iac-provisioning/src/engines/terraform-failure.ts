import type { Diagnostic } from "./engine-event.ts";
import type { EngineFailure, EngineFailureCode, EngineSignals } from "./engine.ts";
import { INTERRUPTED, KILLED } from "./engine-stopped.ts";
import { plainLine } from "./plain-text.ts";
import type { Exit } from "./subprocess.ts";

/** What the CLI's diagnostics begin with, and what they mean; the CLI has no error codes. */
const MEANINGS: readonly (readonly [RegExp, EngineFailureCode])[] = [
  [/^Saved plan is stale|^Saved plan does not match|^Inconsistent dependency lock file/, "STALE_PLAN"],
  [/^Error acquiring the state lock/, "STATE_LOCKED"],
  [/error loading state|Failed to get state|Error refreshing state|Failed to (?:save|persist) state/i, "STATE_REFUSED"],
  [
    /configuration|variable|argument|block|attribute|Reference to undeclared|Unsupported|Invalid expression/i,
    "INVALID_PROGRAM",
  ],
];

/**
 * Why a command ended without success. What the job was told comes first, for the exit code of an interrupted command
 * is that of a failed one; then the first error that names a resource, then the first error.
 */
export function terraformFailure(
  exit: Exit,
  diagnostics: readonly Diagnostic[],
  signals: EngineSignals,
): EngineFailure {
  if (signals.kill.aborted || exit.signal !== null) return KILLED;
  if (signals.interrupt.aborted) return INTERRUPTED;
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  const cause = errors.find(({ address }) => address !== undefined) ?? errors[0];
  if (!cause)
    return { code: "ENGINE_ERROR", message: `the engine ended with exit code ${exit.code} and no diagnostic` };

  const message = plainLine(cause.detail === "" ? cause.summary : `${cause.summary}: ${cause.detail}`);
  if (cause.address !== undefined) return { code: "ENGINE_ERROR", message, address: cause.address };
  const [, code = "ENGINE_ERROR"] = MEANINGS.find(([pattern]) => pattern.test(cause.summary)) ?? [];
  return { code, message };
}

/** Diagnostics in the CLI's human form, as `init` prints them: each `Error: …` line with what follows it. */
export function textDiagnostics(lines: readonly string[]): Diagnostic[] {
  const text = lines.map((line) => line.replace(/^[╷│╵]\s?/, "")).join("\n");
  return text
    .split(/^Error: /m)
    .slice(1)
    .map((part) => {
      const [summary = "", ...detail] = part.split("\n");
      return { severity: "error", summary: plainLine(summary), detail: plainLine(detail.join(" ")) };
    });
}
