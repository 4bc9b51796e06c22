import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import { z } from "zod";
import type { Specification } from "../generated/prisma/client.ts";
import type { Context } from "./context.ts";
import { canonicalJson, type JsonObject, sha256 } from "./programs/canonical-json.ts";
import { InvalidProgram } from "./programs/program.ts";
import { loadProgram, type Program } from "./programs/program-directory.ts";
import { resolveParameters, sensitiveParameterValues } from "./programs/program-parameters.ts";

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
const jsonObject = z.record(z.string(), z.json());

/** Holds what was declared against the program. Throws InvalidInput with a violation per field. */
export async function resolveDesiredState(
  { settings }: Context,
  programVersion: string,
  given: JsonObject,
): Promise<DesiredState> {
  const program = await findProgram(settings.PROGRAMS_DIR, programVersion);
  const { parameters, violations } = resolveParameters(program, given);
  if (violations.length > 0) throw new InvalidInput(violations);
  return desiredState(program, parameters);
}

/** What a specification was declared with, from the program that is there now. Throws InvalidProgram. */
export async function openDesiredState(
  { settings, box }: Context,
  specification: Specification,
): Promise<DesiredState> {
  const { id, programVersion, sealedParameters } = specification;
  const program = await loadProgram(settings.PROGRAMS_DIR, programVersion);
  if (!program) throw new InvalidProgram(`program ${programVersion} isn't here any more`);
  const clear = box.open(sealedParameters, PURPOSE, id).toString("utf8");
  return desiredState(program, jsonObject.parse(JSON.parse(clear)));
}

export function sealParameters({ box }: Context, specificationId: string, parameters: JsonObject) {
  return new Uint8Array(box.seal(Buffer.from(canonicalJson(parameters)), PURPOSE, specificationId));
}

function desiredState(program: Program, parameters: JsonObject): DesiredState {
  const contentDigest = sha256(canonicalJson({ programDigest: program.digest, parameters }));
  return { program, parameters, contentDigest, secrets: sensitiveParameterValues(program, parameters) };
}

async function findProgram(directory: string, programVersion: string): Promise<Program> {
  try {
    const program = await loadProgram(directory, programVersion);
    if (program) return program;
  } catch (error) {
    if (!(error instanceof InvalidProgram)) throw error;
    throw new InvalidInput([{ field: "programVersion", description: error.message }]);
  }
  const description = `${programVersion} isn't a program of this installation: publish it, or name one that is there`;
  throw new InvalidInput([{ field: "programVersion", description }]);
}
