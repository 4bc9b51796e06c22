import { z } from "zod";
import type { Context } from "../context.ts";
import type { Planned } from "../engines/engine.ts";

/** What of a plan is kept for its apply. Secret. */
export interface KeptPlan {
  artifact: Uint8Array;
  sensitiveValues: readonly string[];
}

const PLAN = "plan";
const OUTPUTS = "outputs";

const kept = z.object({ artifact: z.base64(), sensitiveValues: z.array(z.string()) });

export function sealPlan({ box }: Context, runId: string, { artifact, sensitiveValues }: Planned) {
  const text = JSON.stringify({ artifact: Buffer.from(artifact).toString("base64"), sensitiveValues });
  return new Uint8Array(box.seal(Buffer.from(text), PLAN, runId));
}

export function openPlan({ box }: Context, runId: string, sealed: Uint8Array): KeptPlan {
  const { artifact, sensitiveValues } = kept.parse(JSON.parse(box.open(sealed, PLAN, runId).toString("utf8")));
  return { artifact: Buffer.from(artifact, "base64"), sensitiveValues };
}

/** Null where there are none. */
export function sealOutputs({ box }: Context, runId: string, sensitiveOutputs: object) {
  if (Object.keys(sensitiveOutputs).length === 0) return null;
  return new Uint8Array(box.seal(Buffer.from(JSON.stringify(sensitiveOutputs)), OUTPUTS, runId));
}
