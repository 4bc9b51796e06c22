import type { FieldViolation } from "@runtime-cloud/service-kit/errors";
import { canonicalJson, type JsonObject } from "../json/canonical-json.ts";
import { isPlainObject, jsonProblem } from "../json/json-bounds.ts";

/** A desired state is written by people: what is larger belongs into the program, or where the program fetches it. */
const MAX_PARAMETERS_BYTES = 256 * 1024;
/** How much of a name that anybody may have chosen is repeated. */
const MAX_SHOWN = 64;
const PLAIN_NAME = /^\w+$/;

/** What of the parameters is not to be looked at any further: no plain JSON, too deep, or too much in all. */
export function unfitParameters(given: JsonObject): FieldViolation[] {
  if (!isPlainObject(given)) return [{ field: "parameters.__proto__", description: "is no name of a parameter" }];
  const unfit = Object.entries(given).flatMap(([name, value]) => {
    const description = jsonProblem(value);
    return description === undefined ? [] : [{ field: parameterField(name), description }];
  });
  return unfit.length > 0 ? unfit : tooLarge(given);
}

/** `parameters.size`, or `parameters["a.b"]` where a dot would say something else. */
export function parameterField(name: string): string {
  const shown = name.length > MAX_SHOWN ? `${name.slice(0, MAX_SHOWN)}…` : name;
  return PLAIN_NAME.test(shown) ? `parameters.${shown}` : `parameters[${JSON.stringify(shown)}]`;
}

/** Named by the largest, which is where there is something to save. */
function tooLarge(given: JsonObject): FieldViolation[] {
  const sizes = Object.entries(given).map(([name, value]) => ({
    name,
    bytes: Buffer.byteLength(name) + Buffer.byteLength(canonicalJson(value)),
  }));
  const total = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= MAX_PARAMETERS_BYTES) return [];
  const largest = sizes.reduce((a, b) => (b.bytes > a.bytes ? b : a));
  const limit = `at most ${MAX_PARAMETERS_BYTES} are allowed`;
  const description = `has ${largest.bytes} of the ${total} bytes that the parameters have as JSON; ${limit}`;
  return [{ field: parameterField(largest.name), description }];
}
