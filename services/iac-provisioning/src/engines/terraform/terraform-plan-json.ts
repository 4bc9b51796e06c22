import { z } from "zod";
import type { JsonValue } from "../../json/canonical-json.ts";
import { parsedJson, parsedJsonObject } from "../../json/parsed-json.ts";
import { EngineStopped } from "../engine-stopped.ts";

/*
 * The parts of `show -json <plan>` that are read, each by itself. Whatever else the document says is left alone, for
 * newer minor versions of the format add to it; a new major version is refused. All of it is secret.
 */

const SUPPORTED_MAJOR = "1";

const change = z.object({
  actions: z.array(z.string()),
  before: parsedJson.optional(),
  after: parsedJson.optional(),
  after_unknown: parsedJson.optional(),
  before_sensitive: parsedJson.optional(),
  after_sensitive: parsedJson.optional(),
  replace_paths: z.array(z.array(z.union([z.string(), z.number()]))).default([]),
  /** Present where an object that exists is taken in; `unknown` only in changes that are deferred. */
  importing: z.object({ id: z.string().optional(), identity: parsedJson.optional() }).nullish(),
});

export const outputChange = change;
export type TerraformChange = z.infer<typeof change>;

export const resourceChange = z.object({
  address: z.string(),
  previous_address: z.string().optional(),
  mode: z.string().optional(),
  type: z.string(),
  /** The key of an object that an earlier replacement left behind; the address is that of its successor. */
  deposed: z.string().optional(),
  action_reason: z.string().optional(),
  change,
});
export type TerraformResourceChange = z.infer<typeof resourceChange>;

export const stateResource = z.object({
  address: z.string(),
  mode: z.string(),
  type: z.string(),
  values: parsedJsonObject.nullish().transform((values) => values ?? {}),
  sensitive_values: parsedJson.optional(),
});
export type TerraformStateResource = z.infer<typeof stateResource>;

export const plannedOutput = z.object({ sensitive: z.boolean().default(false), value: parsedJson.optional() });
export const variable = z.object({ value: parsedJson.optional() });
export const variableDeclaration = z.object({ sensitive: z.boolean().default(false) });
export const relevantAttribute = z.object({ resource: z.string() });
export const deferredChange = z.object({
  reason: z.string().default("unknown"),
  resource_change: z.object({ address: z.string() }),
});
export const actionInvocation = z.object({ address: z.string() });

export const check = z.object({
  address: z.object({ to_display: z.string() }),
  status: z.string(),
  instances: z.array(z.object({ problems: z.array(z.object({ message: z.string() })).default([]) })).default([]),
});
export type TerraformCheck = z.infer<typeof check>;

/** Throws EngineStopped when what stands at `place` has not the form it must have. */
export function read<T>(schema: z.ZodType<T>, value: JsonValue, place: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = [place, ...(issue?.path ?? []).map(String)].join(".");
  throw invalidPlan(`what "show -json" prints has not the form of a plan (at ${at})`);
}

/** Throws EngineStopped for a format that this version does not know. */
export function refuseUnknownFormat(version: JsonValue): void {
  const [major] = typeof version === "string" ? version.split(".") : [];
  if (major === SUPPORTED_MAJOR) return;
  throw invalidPlan(
    `plan format ${JSON.stringify(version)} is not known: use an engine that writes ${SUPPORTED_MAJOR}.x`,
  );
}

export function invalidPlan(message: string): EngineStopped {
  return new EngineStopped({ code: "INVALID_PLAN", message });
}
