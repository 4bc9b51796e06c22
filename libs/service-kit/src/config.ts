import { z } from "zod";

/** Every problem of a process's settings at once. `runUntilSignal` prints it and ends with EX_CONFIG, without a stack. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(["The configuration can't be used:", ...problems.map((problem) => `  ${problem}`)].join("\n"));
    this.problems = problems;
  }
}

export interface SettingDescription {
  variable: string;
  description: string;
  /** Undefined for what has none, and for the value of a secret. */
  default: string | undefined;
  required: boolean;
}

/** What a setting says of itself: `z.string().meta({ description, secret: true })`. */
interface SettingMeta {
  description?: string | undefined;
  secret?: boolean;
}

/**
 * Environment → typed → frozen. The schema's keys are the variables' names, and so are the result's. An empty variable
 * counts as unset.
 *
 * @throws ConfigError naming each variable, what is wrong with it and what it wants
 */
export function readConfig<Schema extends z.ZodObject>(schema: Schema, env: NodeJS.ProcessEnv): Config<Schema> {
  const given = setVariables(schema, env);
  const parsed = schema.safeParse(given);
  if (!parsed.success) throw new ConfigError(parsed.error.issues.map((issue) => problem(schema, given, issue)));
  return deepFreeze(parsed.data);
}

export type Config<Schema extends z.ZodObject> = Readonly<z.output<Schema>>;

/** The rows of a configuration table, in the schema's order. */
export function describeSettings(schema: z.ZodObject): SettingDescription[] {
  return Object.entries(fieldsOf(schema)).map(([variable, field]) => {
    const { description = "", secret = false } = metaOf(field);
    const unset = z.safeParse(field, undefined);
    const preset = unset.success && !secret ? show(unset.data) : undefined;
    return { variable, description, default: preset, required: !unset.success };
  });
}

function setVariables(schema: z.ZodObject, env: NodeJS.ProcessEnv): Record<string, string> {
  const set: Record<string, string> = {};
  for (const variable of Object.keys(fieldsOf(schema))) {
    const value = env[variable]?.trim();
    if (value) set[variable] = value;
  }
  return set;
}

function problem(schema: z.ZodObject, given: Record<string, string>, issue: z.core.$ZodIssue): string {
  const variable = String(issue.path[0] ?? "");
  const field = fieldsOf(schema)[variable];
  const { description, secret = false } = field ? metaOf(field) : {};
  const wants = description ? `; it wants: ${description}` : "";
  const value = given[variable];
  if (value === undefined) {
    const unset = issue.code === "custom" ? `is not set, and ${issue.message}` : "is not set";
    return `${variable} ${unset}${wants}`;
  }
  return `${variable}${secret ? " (value hidden)" : `="${value}"`} ${issue.message}${wants}`;
}

function fieldsOf(schema: z.ZodObject): Readonly<Record<string, z.core.$ZodType>> {
  return schema.shape;
}

/** `.default()`, `.optional()` and `.transform()` wrap a setting; what it says of itself may be on any layer. */
function metaOf(field: z.core.$ZodType): SettingMeta {
  const meta: SettingMeta | undefined = z.globalRegistry.get(field);
  if (meta?.description !== undefined) return meta;
  const { def } = field._zod;
  for (const layer of ["innerType", "in"]) {
    const inner: unknown = Reflect.get(def, layer);
    if (inner instanceof z.core.$ZodType) return metaOf(inner);
  }
  return {};
}

function show(value: unknown): string | undefined {
  if (value === undefined || typeof value === "string") return value;
  return Array.isArray(value) ? value.join(",") : JSON.stringify(value);
}

function deepFreeze<T>(value: T): Readonly<T> {
  if (typeof value === "object" && value !== null) {
    for (const inner of Object.values(value)) deepFreeze(inner);
    Object.freeze(value);
  }
  return value;
}
