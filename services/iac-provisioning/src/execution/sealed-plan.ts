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

/** A run's outputs as its row has them: of the sensitive ones the names, and their values sealed. */
export function outputColumns(
  { box }: Context,
  runId: string,
  { outputs, sensitiveOutputs }: Pick<Planned, "outputs" | "sensitiveOutputs">,
) {
  const names = Object.keys(sensitiveOutputs).sort();
  const sealed = names.length > 0 ? box.seal(Buffer.from(JSON.stringify(sensitiveOutputs)), OUTPUTS, runId) : null;
  return { outputs: { ...outputs }, sensitiveOutputs: names, sealedOutputs: sealed && new Uint8Array(sealed) };
}
