import { ObservationFailed } from "../observer.ts";
import { isPrintable } from "../storable.ts";

/** Where the version is in an answer that is a JSON object, unless a component says otherwise. */
const DEFAULT_FIELD = "version";
const MAX_VERSION = 128;

/**
 * The version in an answer: the text, or number, at the field of a JSON object; a JSON string; or the answer itself, if
 * it is a short line. An empty field is `version`. Throws ObservationFailed when there is none.
 */
export function versionIn(body: string, field: string): string {
  const json = jsonOf(body);
  const isObject = typeof json === "object" && json !== null;
  if (field !== "" && !isObject) throw new ObservationFailed(`no JSON object, so nothing is at ${field}`);
  // A bare number is taken as it is written: 1.10 is no 1.1.
  const found = isObject ? at(json, field || DEFAULT_FIELD) : typeof json === "string" ? json : body;
  const version = typeof found === "number" ? String(found) : typeof found === "string" ? found.trim() : "";
  if (version !== "" && version.length <= MAX_VERSION && isPrintable(version)) return version;
  const where = isObject ? `at ${field || DEFAULT_FIELD}` : "in the answer";
  throw new ObservationFailed(`no text of 1 to ${MAX_VERSION} characters ${where}`);
}

function at(json: object, field: string): unknown {
  let found: unknown = json;
  for (const step of field.split(".")) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, step)) return undefined;
    found = Object.entries(found).find(([name]) => name === step)?.[1];
  }
  return found;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
