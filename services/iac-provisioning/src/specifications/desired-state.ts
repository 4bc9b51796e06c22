import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import type { Specification } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { jsonObject } from "../json/json-object.ts";
import { canonicalJson, type JsonObject, sha256 } from "../json/canonical-json.ts";
import { declaredProgram, findProgram } from "../programs/find-program.ts";
import type { Program } from "../programs/program-directory.ts";
import type { ProgramDatabase, PublishedKey } from "../programs/published-programs.ts";
import { resolveParameters, sensitiveParameterValues } from "../programs/program-parameters.ts";

/** A program and all its parameters: what an engine plans from. */
export interface DesiredState {
  program: Program;
  /** Secret: sensitive ones are in clear. */
  parameters: JsonObject;
  /** Addresses the content, wherever and whenever it was declared. */
  contentDigest: string;
  /** The sensitive parameters' values. Secret. */
  secrets: string[];
}

const PURPOSE = "parameters";

/** Holds what is declared against the program that the tenant means. Throws InvalidInput with a violation per field. */
export async function resolveDesiredState(
  context: Context,
  db: ProgramDatabase,
  { parameters: given, ...key }: PublishedKey & { parameters: JsonObject },
): Promise<DesiredState> {
  const program = await findProgram(context, db, key);
  const { parameters, violations } = resolveParameters(program, given);
  if (violations.length > 0) throw new InvalidInput(violations);
  return desiredState(program, parameters);
}

/** What a specification was declared with. Throws InvalidProgram when the program isn't what it was any more. */
export async function openDesiredState(context: Context, specification: Specification): Promise<DesiredState> {
  const { id, sealedParameters } = specification;
  const program = await declaredProgram(context, specification);
  const clear = context.box.open(sealedParameters, PURPOSE, id).toString("utf8");
  return desiredState(program, jsonObject(JSON.parse(clear)));
}

export function sealParameters({ box }: Context, specificationId: string, parameters: JsonObject) {
  return new Uint8Array(box.seal(Buffer.from(canonicalJson(parameters)), PURPOSE, specificationId));
}

function desiredState(program: Program, parameters: JsonObject): DesiredState {
  const contentDigest = sha256(canonicalJson({ programDigest: program.digest, parameters }));
  return { program, parameters, contentDigest, secrets: sensitiveParameterValues(program, parameters) };
}
