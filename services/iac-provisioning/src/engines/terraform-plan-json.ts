import { z } from "zod";
import { parsedJson, parsedJsonObject } from "../programs/json-schema.ts";
import { EngineStopped } from "./engine-stopped.ts";

/** What of `show -json <plan>` is read; the rest is left alone, for newer minor versions add to it. Secret. */
export type TerraformPlan = z.infer<typeof terraformPlan>;
export type TerraformResourceChange = z.infer<typeof resourceChange>;
export interface TerraformStateModule {
  readonly resources: readonly z.infer<typeof stateResource>[];
  readonly child_modules: readonly TerraformStateModule[];
}

const SUPPORTED_MAJOR = "1";

const change = z.object({
  actions: z.array(z.string()),
  before: parsedJson.optional(),
  after: parsedJson.optional(),
  after_unknown: parsedJson.optional(),
  before_sensitive: parsedJson.optional(),
  after_sensitive: parsedJson.optional(),
});

const resourceChange = z.object({
  address: z.string(),
  previous_address: z.string().optional(),
  mode: z.string().optional(),
  type: z.string(),
  action_reason: z.string().optional(),
  change,
});

const stateResource = z.object({
  address: z.string(),
  mode: z.string(),
  type: z.string(),
  values: parsedJsonObject.default({}),
  sensitive_values: parsedJson.optional(),
});

const stateModule: z.ZodType<TerraformStateModule> = z.object({
  resources: z.array(stateResource).default([]),
  child_modules: z.array(z.lazy(() => stateModule)).default([]),
});

const output = z.object({ sensitive: z.boolean().default(false), value: parsedJson.optional() });

const terraformPlan = z.object({
  format_version: z.string(),
  errored: z.boolean().default(false),
  variables: z.record(z.string(), z.object({ value: parsedJson.optional() })).default({}),
  resource_changes: z.array(resourceChange).default([]),
  resource_drift: z.array(resourceChange).default([]),
  output_changes: z.record(z.string(), change).default({}),
  relevant_attributes: z.array(z.object({ resource: z.string(), attribute: z.array(parsedJson) })).default([]),
  planned_values: z.object({ outputs: z.record(z.string(), output).default({}) }).default({ outputs: {} }),
  prior_state: z.object({ values: z.object({ root_module: stateModule.optional() }).optional() }).optional(),
  configuration: z
    .object({
      root_module: z
        .object({ variables: z.record(z.string(), z.object({ sensitive: z.boolean().default(false) })).default({}) })
        .default({ variables: {} }),
    })
    .default({ root_module: { variables: {} } }),
});

/** Throws EngineStopped when it is no plan of a format that is known. */
export function parseTerraformPlan(text: string): TerraformPlan {
  const parsed = terraformPlan.safeParse(parseJson(text));
  if (!parsed.success) {
    const at = parsed.error.issues.map(({ path }) => path.map(String).join(".")).join(", ");
    throw unreadable(`what "show -json" prints has not the form of a plan (at ${at || "its root"})`);
  }
  const [major] = parsed.data.format_version.split(".");
  if (major !== SUPPORTED_MAJOR) throw unreadable(`plan format ${parsed.data.format_version} is not known`);
  return parsed.data;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unreadable('what "show -json" prints is not JSON, or too large');
  }
}

function unreadable(message: string): EngineStopped {
  return new EngineStopped({ code: "ENGINE_ERROR", message });
}
