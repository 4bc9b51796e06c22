import type { FieldViolation } from "@runtime-cloud/service-kit/errors";
import { scalarTexts, type JsonObject, type JsonValue } from "../json/canonical-json.ts";
import { parameterField, unfitParameters } from "./parameter-bounds.ts";
import { isOfType, typeName } from "./parameter-type.ts";
import type { ParameterDeclaration, ProgramDeclaration } from "./program.ts";

export interface ResolvedParameters {
  /** What was given plus the defaults; only to be used when there is no violation. */
  readonly parameters: JsonObject;
  readonly violations: readonly FieldViolation[];
}

/** An answer says only so much: whoever has more wrong has not written it by hand. */
const MAX_VIOLATIONS = 16;
const MAX_NAMED = 10;

/** Holds parameters of any origin against a program's declaration and fills in its defaults. */
export function resolveParameters(program: ProgramDeclaration, given: JsonObject): ResolvedParameters {
  const unfit = unfitParameters(given);
  if (unfit.length > 0) return { parameters: {}, violations: unfit.slice(0, MAX_VIOLATIONS) };

  const declared = Object.entries(program.parameters);
  const known = listed(declared.map(([name]) => name));
  const undeclared = Object.keys(given).filter((name) => !Object.hasOwn(program.parameters, name));
  const parameters = Object.fromEntries(declared.flatMap(([name, declaration]) => valueOf(name, declaration, given)));
  const violations = [
    ...undeclared.map((name) => ({
      field: parameterField(name),
      description: `is not a parameter of the program; it takes ${known}`,
    })),
    ...declared.flatMap(([name, declaration]) => violationsOf(name, declaration, parameters)),
  ];
  return { parameters, violations: violations.slice(0, MAX_VIOLATIONS) };
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

function listed(names: readonly string[]): string {
  const named = names.length > MAX_NAMED ? [...names.slice(0, MAX_NAMED), "…"] : names;
  return named.join(", ") || "none";
}

function valueOf(name: string, declaration: ParameterDeclaration, given: JsonObject): [string, JsonValue][] {
  const value = Object.hasOwn(given, name) ? given[name] : declaration.default;
  return value === undefined ? [] : [[name, value]];
}

function violationsOf(name: string, declaration: ParameterDeclaration, parameters: JsonObject): FieldViolation[] {
  const field = parameterField(name);
  // Asked for its own members only: every object has a `constructor` otherwise.
  const value = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
  if (value === undefined) return declaration.required ? [{ field, description: "is required" }] : [];
  if (isOfType(value, declaration.type)) return [];
  return [{ field, description: `must be of type ${declaration.type}, not ${typeName(value)}` }];
}
