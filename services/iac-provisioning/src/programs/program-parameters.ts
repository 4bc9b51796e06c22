import { isJsonArray, isJsonObject, scalarTexts, type JsonObject, type JsonValue } from "./canonical-json.ts";
import type { ParameterDeclaration, ProgramDeclaration } from "./program.ts";

/** What is wrong with one field of a request. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

export interface ResolvedParameters {
  /** What was given plus the defaults; only to be used when there is no violation. */
  readonly parameters: JsonObject;
  readonly violations: readonly FieldViolation[];
}

/** Holds parameters against a program's declaration and fills in its defaults. */
export function resolveParameters(program: ProgramDeclaration, given: JsonObject): ResolvedParameters {
  const declared = Object.entries(program.parameters);
  const undeclared = Object.keys(given).filter((name) => !Object.hasOwn(program.parameters, name));
  const parameters = Object.fromEntries(declared.flatMap(([name, declaration]) => valueOf(name, declaration, given)));
  return {
    parameters,
    violations: [
      ...undeclared.map((name) => ({
        field: `parameters.${name}`,
        description: `is not a parameter of the program; it takes ${declared.map(([known]) => known).join(", ") || "none"}`,
      })),
      ...declared.flatMap(([name, declaration]) => violationsOf(name, declaration, parameters)),
    ],
  };
}

/** The values of parameters that the program declares as sensitive, as texts to scrub. Secret. */
export function sensitiveParameterValues(program: ProgramDeclaration, parameters: JsonObject): string[] {
  return Object.entries(program.parameters)
    .filter(([, declaration]) => declaration.sensitive)
    .flatMap(([name]) => scalarTexts(parameters[name]));
}

/** Parameters as they may be shown: sensitive ones replaced by the placeholder. */
export function maskParameters(program: ProgramDeclaration, parameters: JsonObject, placeholder: string): JsonObject {
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [
      name,
      program.parameters[name]?.sensitive === true ? placeholder : value,
    ]),
  );
}

function valueOf(name: string, declaration: ParameterDeclaration, given: JsonObject): [string, JsonValue][] {
  const value = Object.hasOwn(given, name) ? given[name] : declaration.default;
  return value === undefined ? [] : [[name, value]];
}

function violationsOf(name: string, declaration: ParameterDeclaration, parameters: JsonObject): FieldViolation[] {
  const field = `parameters.${name}`;
  const value = parameters[name];
  if (value === undefined) return declaration.required ? [{ field, description: "is required" }] : [];
  if (isOfType(value, declaration.type)) return [];
  return [{ field, description: `must be of type ${declaration.type}, not ${typeName(value)}` }];
}

function isOfType(value: JsonValue, type: ParameterDeclaration["type"]): boolean {
  if (type === "list") return isJsonArray(value);
  if (type === "object") return isJsonObject(value);
  if (type === "integer") return Number.isSafeInteger(value);
  return typeof value === type;
}

function typeName(value: JsonValue): string {
  if (value === null) return "null";
  return isJsonArray(value) ? "list" : typeof value;
}
