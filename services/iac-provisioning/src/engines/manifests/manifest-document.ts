import { parse, parseAllDocuments, stringify } from "yaml";
import { z } from "zod";
import {
  canonicalJson,
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from "../../json/canonical-json.ts";
import { mask } from "../redaction/mask.ts";
import type { Scrubber } from "../redaction/scrub.ts";

const MAX_YAML_ALIASES = 50;
const MANIFEST_FILE = /\.(?:ya?ml|json)$/;
const json = z.json();

export function isManifestFile(name: string): boolean {
  return MANIFEST_FILE.test(name);
}

/** The document of a YAML or JSON file, or the list of its documents; undefined when it is neither. */
export function parseManifest(name: string, text: string): JsonValue | undefined {
  try {
    if (name.endsWith(".json")) return json.parse(JSON.parse(text));
    const documents = parseAllDocuments(text);
    if ("empty" in documents) return null;
    if (documents.length === 1) return json.parse(parse(text, { maxAliasCount: MAX_YAML_ALIASES }));
    return documents.map((document) => {
      const [error] = document.errors;
      if (error) throw error;
      return json.parse(document.toJS({ maxAliasCount: MAX_YAML_ALIASES }));
    });
  } catch {
    return undefined;
  }
}

/** The file of one document, in the form that its name says. */
export function printManifest(name: string, document: JsonValue): string {
  if (name.endsWith(".json")) return `${JSON.stringify(document, null, 2)}\n`;
  const documents = isJsonArray(document) ? document : [document];
  return documents.map((each) => stringify(each, { lineWidth: 0, aliasDuplicateObjects: false })).join("---\n");
}

/** A file as a resource: its attributes are its document's; of what is no document, its text. */
export function manifestAttributes(name: string, text: string): JsonObject {
  const document = parseManifest(name, text);
  if (isJsonObject(document)) return document;
  return isJsonArray(document) ? { documents: document } : { content: document ?? text };
}

/**
 * Attributes as they may be shown: a Kubernetes Secret's data is hidden whole, and so is what is named like a secret and
 * what `sensitive` marks.
 */
export function shownAttributes(attributes: JsonObject, sensitive: JsonValue): JsonObject {
  const shown = mask(mask(attributes, sensitiveParts(attributes), undefined), sensitive, undefined);
  return isJsonObject(shown) ? shown : {};
}

/** Marks where a secret was put, so that whatever lies there later is hidden as well. */
export function secretPlaces(value: JsonValue, scrub: Scrubber): JsonValue {
  if (isJsonArray(value)) return value.map((item) => secretPlaces(item, scrub));
  if (!isJsonObject(value)) return canonicalJson(scrub.json(value)) !== canonicalJson(value);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, secretPlaces(member, scrub)]));
}

/** Its `kind`, where it has one. */
export function manifestType(attributes: JsonObject): string {
  return typeof attributes.kind === "string" ? attributes.kind : "File";
}

function sensitiveParts(document: JsonValue): JsonValue {
  if (!isJsonObject(document)) return {};
  if (isJsonArray(document.documents)) return { documents: document.documents.map(sensitiveParts) };
  return document.kind === "Secret" ? { data: true, stringData: true } : {};
}
