import { createHash } from "node:crypto";
import { canonicalJson, sha256 } from "../json/canonical-json.ts";
import type { PlannedChange } from "./engine-event.ts";
import type { EngineVersion, PlanJob, StateIdentity } from "./engine.ts";

/**
 * What an approval binds to: `sha256:<hex>` over the changes as they are shown and over all that they follow from.
 * The parameters count in clear, so that a changed secret is a changed plan though both show the same mask; the
 * artifact counts because it is what will be done. Each part is a line of canonical JSON, which has no line breaks.
 */
export function planDigest(
  job: PlanJob,
  engine: EngineVersion,
  state: StateIdentity,
  changes: readonly PlannedChange[],
  artifactDigest: string,
): string {
  const identity = {
    programVersion: job.program.programVersion,
    programDigest: job.program.digest,
    parametersDigest: sha256(canonicalJson(job.parameters)),
    mode: job.mode,
    engine: { product: engine.product, version: engine.version },
    state: { lineage: state.lineage, serial: state.serial },
    artifactDigest,
  };
  const hash = createHash("sha256").update(canonicalJson(identity));
  for (const change of changes) hash.update("\n").update(canonicalJson({ ...change }));
  return `sha256:${hash.digest("hex")}`;
}
