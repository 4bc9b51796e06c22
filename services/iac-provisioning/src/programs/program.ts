import { parse } from "yaml";
import { z } from "zod";
import type { JsonObject } from "../json/canonical-json.ts";
import { jsonProblem } from "../json/json-bounds.ts";
import { isOfType, PARAMETER_TYPES, typeName } from "./parameter-type.ts";
import { messageOf } from "../system-error.ts";

/** The file at a program's root that says what it is. */
export const PROGRAM_FILE = "program.yaml";
/** A declaration may repeat itself by YAML aliases only so often: a bound on what it unfolds to. */
const MAX_YAML_ALIASES = 50;
const PARAMETER_NAME = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;
/** `<address>#<attribute>`, as drift has them. */
const ADOPTED_PLACE = /^[^#]+#.+$/;
const MAX_DESCRIPTION_LENGTH = 2000;
/** What a list of programs shows of one. */
const MAX_DECLARATION_BYTES = 64 * 1024;

const parameterDeclaration = z
  .strictObject({
    type: z.enum(PARAMETER_TYPES),
    description: z.string().max(MAX_DESCRIPTION_LENGTH).default(""),
    required: z.boolean().default(false),
    sensitive: z.boolean().default(false),
    default: z.json().optional(),
  })
  .check(({ value: { type, default: value }, issues }) => {
    if (value === undefined || isOfType(value, type)) return;
    issues.push({
      code: "custom",
      path: ["default"],
      message: `must be of type ${type}, not ${typeName(value)}`,
      input: value,
    });
  });

const programDeclaration = z.strictObject({
  engine: z.enum(["terraform", "manifests"]),
  network: z.enum(["host", "none"]).default("host"),
  description: z.string().max(MAX_DESCRIPTION_LENGTH),
  parameters: z.record(z.string().regex(PARAMETER_NAME), parameterDeclaration).default({}),
  outputs: z.record(z.string().regex(PARAMETER_NAME), z.json()).optional(),
  adopts: z.record(z.string().regex(ADOPTED_PLACE), z.string().regex(PARAMETER_NAME)).default({}),
});

/** One parameter that a program takes; without a default and not required it may be left out. */
export type ParameterDeclaration = z.infer<typeof parameterDeclaration>;

/** What program.yaml declares. */
export interface ProgramDeclaration {
  readonly engine: "terraform" | "manifests";
  /** What the program's engine can reach; `none` is nothing but its own state. */
  readonly network: "host" | "none";
  readonly description: string;
  readonly parameters: Readonly<Record<string, ParameterDeclaration>>;
  /** Only for `manifests`, rendered from the parameters; a terraform program declares its outputs in its own code. */
  readonly outputs: JsonObject;
  /** Which parameter takes an attribute's drift over, by `<address>#<attribute>`, where that can't be told otherwise. */
  readonly adopts: Readonly<Record<string, string>>;
}

/** A program whose content makes no sense; the message names the file, the field and what is wanted. */
export class InvalidProgram extends Error {
  override readonly name = "InvalidProgram";
  /** The message without the program's own name. */
  readonly problem: string;

  constructor(problem: string, programVersion?: string) {
    super(programVersion === undefined ? problem : `program ${programVersion}: ${problem}`);
    this.problem = problem;
  }
}

/** Reads program.yaml. Throws InvalidProgram. */
export function parseProgramDeclaration(text: string): ProgramDeclaration {
  const parsed = programDeclaration.safeParse(parseYaml(text));
  if (!parsed.success) throw new InvalidProgram(`${PROGRAM_FILE}: ${parsed.error.issues.map(describe).join("; ")}`);

  const { engine, outputs = {}, ...rest } = parsed.data;
  for (const [place, name] of Object.entries(rest.adopts)) {
    if (Object.hasOwn(rest.parameters, name)) continue;
    throw new InvalidProgram(`${PROGRAM_FILE}: adopts.${place}: ${name} is not a parameter of the program`);
  }
  if (engine === "terraform" && Object.keys(outputs).length > 0) {
    throw new InvalidProgram(`${PROGRAM_FILE}: outputs: a terraform program declares its outputs in its .tf files`);
  }
  return { engine, outputs, ...rest };
}

function parseYaml(text: string): unknown {
  if (Buffer.byteLength(text) > MAX_DECLARATION_BYTES) {
    throw new InvalidProgram(`${PROGRAM_FILE}: is larger than ${MAX_DECLARATION_BYTES} bytes`);
  }
  try {
    const parsed: unknown = parse(text, { maxAliasCount: MAX_YAML_ALIASES });
    const problem = jsonProblem(parsed);
    if (problem === undefined) return parsed;
    throw new InvalidProgram(`${PROGRAM_FILE}: ${problem}`);
  } catch (error) {
    if (error instanceof InvalidProgram) throw error;
    throw new InvalidProgram(`${PROGRAM_FILE}: not YAML: ${messageOf(error)}`);
  }
}

function describe({ path, message }: { path: PropertyKey[]; message: string }): string {
  return `${path.map(String).join(".") || "(root)"}: ${message}`;
}
