import type { DescField, JsonObject } from "@bufbuild/protobuf";

/** Whether a field's JSON names an enum value that this version of the proto doesn't have; not so for a number. */
export function hasUnknownEnumName(field: DescField, data: JsonObject): boolean {
  if (field.fieldKind !== "enum") return false;
  const given = data[field.jsonName] ?? data[field.name];
  return typeof given === "string" && given !== "" && !field.enum.values.some(({ name }) => name === given);
}
