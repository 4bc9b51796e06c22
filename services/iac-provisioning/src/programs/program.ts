import { parse } from "yaml";
import { z } from "zod";
import type { JsonObject } from "./canonical-json.ts";
import { messageOf } from "./system-error.ts";

/** The file at a program's root that says what it is. */
export const PROGRAM_FILE = "program.yaml";
/** A declaration may repeat itself by YAML aliases only so often: a bound on what it unfolds to. */
const MAX_YAML_ALIASES = 50;
const PARAMETER_NAME = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;
const MAX_DESCRIPTION_LENGTH = 2000;

const parameterDeclaration = z.strictObject({
  type: z.enum(["string", "integer", "number", "boolean", "list", "object"]),
  description: z.string().max(MAX_DESCRIPTION_LENGTH).default(""),
  required: z.boolean().default(false),
  sensitive: z.boolean().default(false),
  default: z.json().optional(),
});

const programDeclaration = z.strictObject({
  engine: z.enum(["terraform", "manifests"]),
  description: z.string().max(MAX_DESCRIPTION_LENGTH),
  parameters: z.record(z.string().regex(PARAMETER_NAME), parameterDeclaration).default({}),
  outputs: z.record(z.string().regex(PARAMETER_NAME), z.json()).optional(),
});

/** One parameter that a program takes; without a default and not required it may be left out. */
export type ParameterDeclaration = z.infer<typeof parameterDeclaration>;

/** What program.yaml declares. */
export interface ProgramDeclaration {
  readonly engine: "terraform" | "manifests";
  readonly description: string;
  readonly parameters: Readonly<Record<string, ParameterDeclaration>>;
  /** Only for `manifests`, rendered from the parameters; a terraform program declares its outputs in its own code. */
  readonly outputs: JsonObject;
}

/** A program whose content makes no sense; the message names the file, the field and what is wanted. */
export class InvalidProgram extends Error {
  override readonly name = "InvalidProgram";
}

/** Reads program.yaml. Throws InvalidProgram. */
export function parseProgramDeclaration(text: string): ProgramDeclaration {
  const parsed = programDeclaration.safeParse(parseYaml(text));
  if (!parsed.success) throw new InvalidProgram(`${PROGRAM_FILE}: ${parsed.error.issues.map(describe).join("; ")}`);

  const { engine, outputs = {}, ...rest } = parsed.data;
  if (engine === "terraform" && Object.keys(outputs).length > 0) {
    throw new InvalidProgram(`${PROGRAM_FILE}: outputs: a terraform program declares its outputs in its .tf files`);
  }
  return { engine, outputs, ...rest };
}

function parseYaml(text: string): unknown {
  try {
    return parse(text, { maxAliasCount: MAX_YAML_ALIASES });
  } catch (error) {
    throw new InvalidProgram(`${PROGRAM_FILE}: not YAML: ${messageOf(error)}`);
  }
}

function describe({ path, message }: { path: PropertyKey[]; message: string }): string {
  return `${path.map(String).join(".") || "(root)"}: ${message}`;
}
