import { isJsonObject, type JsonObject, type JsonValue } from "../../json/canonical-json.ts";
import type { ObservedResource } from "../engine.ts";
import { mask } from "../redaction/mask.ts";
import { wellFormed } from "../redaction/plain-text.ts";
import type { TerraformStateResource } from "./terraform-plan-json.ts";

const MAX_SUMMARY_ATTRIBUTES = 32;
const MAX_SUMMARY_VALUE_LENGTH = 256;

/** A resource of the refreshed state as an inventory shows it, sensitive values masked. */
export function observedResource({
  address,
  type,
  values,
  sensitive_values,
}: TerraformStateResource): ObservedResource {
  const shown = mask(values, sensitive_values, undefined);
  const attributes = isJsonObject(shown) ? shown : {};
  const id = typeof attributes.id === "string" ? attributes.id : address;
  return { address, resourceType: type, id, attributes: summaryOf(attributes) };
}

/** The first top-level scalars of a resource, texts cut. */
export function summaryOf(attributes: JsonObject): JsonObject {
  const scalars = Object.entries(attributes).flatMap(([name, value]): [string, JsonValue][] => {
    if (value === null || typeof value === "object") return [];
    return [[name, typeof value === "string" ? wellFormed(value.slice(0, MAX_SUMMARY_VALUE_LENGTH)) : value]];
  });
  return Object.fromEntries(scalars.slice(0, MAX_SUMMARY_ATTRIBUTES));
}
