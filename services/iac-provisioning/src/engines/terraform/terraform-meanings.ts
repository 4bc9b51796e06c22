import type { Diagnostic } from "../engine-event.ts";
import type { EngineFailureCode } from "../engine.ts";

/** What a diagnostic of the CLI means to whoever started the run. */
export interface Meaning {
  readonly code: EngineFailureCode;
  /** What to do about it, where the CLI doesn't say so itself. */
  readonly wayOut?: string;
}

/** What the CLI's summaries begin with; it has no error codes. */
const MEANINGS: readonly (readonly [RegExp, EngineFailureCode])[] = [
  [/^Saved plan is stale|^Saved plan does not match|^Inconsistent dependency lock file/, "STALE_PLAN"],
  [/^Error acquiring the state lock/, "STATE_LOCKED"],
  [/error loading state|Failed to get state|Error refreshing state|Failed to (?:save|persist) state/i, "STATE_REFUSED"],
  [
    /^(?:Failed to (?:query available|install|resolve|retrieve|load|obtain|instantiate) (?:available )?(?:provider|plugin)|Required plugins are not installed|Incompatible provider version|Could not load plugin|Provider registry)/i,
    "PROVIDER_UNAVAILABLE",
  ],
  [
    /^(?:No value for required variable|Invalid value for (?:input )?variable|Invalid variable value|Required variable not set)/,
    "INVALID_INPUT",
  ],
  [
    /^(?:Missing required argument|Unsupported (?:argument|attribute|block type)|Incorrect attribute value type|Invalid (?:expression|reference|index|function argument|template interpolation value|for_each argument|count argument)|(?:Insufficient|Too many) .* blocks|Reference to undeclared|Call to unknown function)/,
    "INVALID_PROGRAM",
  ],
];

/** Said of no resource, these words are about the program; said of one, a provider may mean its own matters. */
const ABOUT_PROGRAM = /configuration|variable|argument|block|attribute|expression|module|provider|syntax|character/i;

const LACKING = /^(?:No value for required variable|Required variable not set)/;
const WAY_TO_INPUT = "take it as a parameter in program.yaml, or give the variable a default";

/** Said to whoever typed the command line, which nobody did here. */
const ADVICE =
  /\s*(?:Use a -var or -var-file command line argument|To see which modules are currently depending on).*$/s;

const PROVIDER = /provider "?((?:[\w.-]+\/){1,2}[\w-]+)/;

export function meaningOf({ summary, detail, address }: Diagnostic): Meaning {
  const [, code] = MEANINGS.find(([pattern]) => pattern.test(summary)) ?? [];
  if (code === "PROVIDER_UNAVAILABLE") return { code, wayOut: wayToProvider(detail) };
  if (LACKING.test(summary)) return { code: "INVALID_INPUT", wayOut: WAY_TO_INPUT };
  if (code !== undefined) return { code };
  return { code: address === undefined && ABOUT_PROGRAM.test(summary) ? "INVALID_PROGRAM" : "ENGINE_ERROR" };
}

/** A diagnostic's detail without what it advises people at a command line. */
export function withoutAdvice(detail: string): string {
  return detail.replace(ADVICE, "");
}

function wayToProvider(detail: string): string {
  const provider = PROVIDER.exec(detail)?.[1] ?? "the provider";
  return (
    `let the engine reach the registry of ${provider}, or have it installed from a mirror: ` +
    "a CLI configuration with provider_installation, named by TF_CLI_CONFIG_FILE, which the engine gets when ENGINE_ENV_PASS lists it"
  );
}
