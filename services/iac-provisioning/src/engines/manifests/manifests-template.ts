import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../json/canonical-json.ts";
import { InvalidProgram } from "../../programs/program.ts";

/** `${name}`, `${settings.database.host}`; `$${` stands for a literal `${`. */
const PLACEHOLDER = /\$\$\{|\$\{([^{}]*)\}/g;
const WHOLE_PLACEHOLDER = /^\$\{([^{}]*)\}$/;
const PARAMETER_PATH = /^[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_-]+)*$/;

/**
 * Puts parameters into a document. A scalar that is one placeholder and nothing else becomes the parameter itself, of
 * whatever type; inside a longer text a scalar is written out. Throws InvalidProgram, naming file and parameter.
 */
export function renderValue(template: JsonValue, parameters: JsonObject, file: string): JsonValue {
  if (typeof template === "string") return renderScalar(template, parameters, file);
  if (isJsonArray(template)) return template.map((item) => renderValue(item, parameters, file));
  if (!isJsonObject(template)) return template;
  return Object.fromEntries(
    Object.entries(template).map(([key, value]) => [
      renderText(key, parameters, file),
      renderValue(value, parameters, file),
    ]),
  );
}

/** The same for what can only be text, such as a file's name. */
export function renderText(template: string, parameters: JsonObject, file: string): string {
  return template.replace(PLACEHOLDER, (placeholder, path?: string) => {
    if (path === undefined) return "${";
    const value = lookUp(path, parameters, file);
    if (value !== null && typeof value !== "object") return String(value);
    throw new InvalidProgram(`${file}: ${placeholder} is not a text or a number, so it must stand alone`);
  });
}

function renderScalar(template: string, parameters: JsonObject, file: string): JsonValue {
  const [, whole] = WHOLE_PLACEHOLDER.exec(template) ?? [];
  return whole === undefined ? renderText(template, parameters, file) : lookUp(whole, parameters, file);
}

function lookUp(path: string, parameters: JsonObject, file: string): JsonValue {
  if (!PARAMETER_PATH.test(path)) throw new InvalidProgram(`${file}: \${${path}} is not a parameter's name`);
  let value: JsonValue | undefined = parameters;
  for (const key of path.split(".")) {
    value = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  }
  if (value !== undefined) return value;
  const known = Object.keys(parameters).join(", ") || "none";
  throw new InvalidProgram(`${file}: \${${path}} has no value; the parameters that have one: ${known}`);
}

/** A part of a text: as it is written, or the path of the parameter that comes there. */
export type TemplatePart = { readonly text: string } | { readonly parameter: string };

/** The parts of a scalar; one parameter and nothing else stands for the parameter itself, whatever its type. */
export function templateParts(template: string): TemplatePart[] {
  const parts: TemplatePart[] = [];
  let end = 0;
  for (const found of template.matchAll(PLACEHOLDER)) {
    if (found.index > end) parts.push({ text: template.slice(end, found.index) });
    const [placeholder, path] = found;
    parts.push(path === undefined ? { text: "${" } : { parameter: path });
    end = found.index + placeholder.length;
  }
  return end < template.length ? [...parts, { text: template.slice(end) }] : parts;
}
