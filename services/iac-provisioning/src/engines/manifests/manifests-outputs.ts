import { canonicalJson, type JsonObject } from "../../json/canonical-json.ts";
import type { ApplyOutcome } from "../engine.ts";
import type { Scrubber } from "../redaction/scrub.ts";

/** An output in which a secret shows is sensitive as a whole. */
export function splitOutputs(outputs: JsonObject, scrub: Scrubber): Pick<ApplyOutcome, "outputs" | "sensitiveOutputs"> {
  const ofKind = (sensitive: boolean) =>
    Object.fromEntries(
      Object.entries(outputs).filter(
        ([, value]) => (canonicalJson(scrub.json(value)) !== canonicalJson(value)) === sensitive,
      ),
    );
  return { outputs: ofKind(false), sensitiveOutputs: ofKind(true) };
}
