import { z } from "zod";
import { canonicalJson, sha256, type JsonObject } from "../../json/canonical-json.ts";
import { parsedJson } from "../../json/parsed-json.ts";
import type { StateDocument } from "../state-client.ts";

const state = z.object({
  outputs: z.record(z.string(), z.object({ value: parsedJson, sensitive: z.boolean().default(false) })).default({}),
  resources: parsedJson.default([]),
});

export interface TerraformOutputs {
  readonly outputs: JsonObject;
  /** Secret. */
  readonly sensitiveOutputs: JsonObject;
}

/** The outputs that a state records: read here since the CLI's stream leaves sensitive values out. */
export function stateOutputs(document: StateDocument): TerraformOutputs {
  const outputs = Object.entries(parse(document).outputs);
  const ofKind = (wanted: boolean) =>
    Object.fromEntries(
      outputs.filter(([, { sensitive }]) => sensitive === wanted).map(([name, { value }]) => [name, value]),
    );
  return { outputs: ofKind(false), sensitiveOutputs: ofKind(true) };
}

/** Tells whether two states record the same resources. */
export function resourcesDigest(document: StateDocument): string {
  return sha256(canonicalJson(parse(document).resources));
}

function parse({ text }: StateDocument): z.infer<typeof state> {
  return state.parse(text === "" ? {} : JSON.parse(text));
}
