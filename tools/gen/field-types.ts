import { type DescField, getOption, isFieldSet, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import {
  field as fieldRules,
  FieldRulesSchema,
  type StringRules,
  StringRulesSchema,
} from "@runtime-cloud/contracts/buf/validate/validate_pb";

const A_HASH = `sha256:${"0".repeat(64)}`;

/** A field's type in the words of the contract's pages: `guid`, `enum:PoolKind`, `list:string`, … */
export function typeName(field: DescField): string {
  if (field.fieldKind === "map") return "json";
  const item = itemName(field);
  return field.fieldKind === "list" ? `list:${item}` : item;
}

/**
 * Whether every event has the field. A number, a flag or a list that isn't `optional` is always written, zero and empty
 * included, and needs no rule.
 */
export function isRequired(field: DescField): boolean {
  const alwaysWritten =
    field.fieldKind === "list" || (field.scalar !== undefined && !isText(field) && isImplicit(field));
  return alwaysWritten || isNeverEmpty(field);
}

/** Whether the field's text isn't empty, or its enum value isn't the unspecified one. */
export function isNeverEmpty(field: DescField): boolean {
  return rulesOf(field).required;
}

/** The rules of a text: whether it is a UUID, and the pattern that it matches. */
export function textRules(field: DescField): { uuid: boolean; pattern: string | undefined } {
  const { type } = rulesOf(field);
  if (type.case !== "string") return { uuid: false, pattern: undefined };
  refuseOthers(field, setFields(type.value), ["uuid", "pattern"]);
  return {
    uuid: type.value.wellKnown.case === "uuid" && type.value.wellKnown.value,
    pattern: isFieldSet(type.value, StringRulesSchema.field.pattern) ? type.value.pattern : undefined,
  };
}

function itemName(field: DescField): string {
  if (field.enum) return `enum:${field.enum.name}`;
  if (field.message) return field.message.typeName === "google.protobuf.Timestamp" ? "datetime" : "json";
  switch (field.scalar) {
    case ScalarType.STRING:
      return textName(field);
    case ScalarType.BOOL:
      return "bool";
    case ScalarType.INT32:
      return "int";
    case ScalarType.INT64:
      return "long";
    default:
      throw new Error(`${String(field)}: the contract has no word for this scalar type`);
  }
}

function textName(field: DescField): string {
  const { uuid, pattern } = textRules(field);
  if (uuid) return "guid";
  if (pattern === undefined) return "string";
  if (new RegExp(pattern).test(A_HASH)) return "hash";
  if (new RegExp(pattern).test("-1.5")) return "decimal";
  throw new Error(`${String(field)}: the contract has no word for a text that matches ${pattern}`);
}

function isImplicit({ presence }: DescField): boolean {
  return presence === FeatureSet_FieldPresence.IMPLICIT;
}

function isText(field: DescField): boolean {
  return field.scalar === ScalarType.STRING;
}

function rulesOf(field: DescField) {
  const rules = getOption(field, fieldRules);
  const set = FieldRulesSchema.fields.filter((rule) => isFieldSet(rules, rule)).map(({ name }) => name);
  refuseOthers(field, set, ["required", "string"]);
  return rules;
}

function setFields(rules: StringRules): string[] {
  return StringRulesSchema.fields.filter((rule) => isFieldSet(rules, rule)).map(({ name }) => name);
}

/** A rule that the documents don't tell would make them lie. */
function refuseOthers(field: DescField, set: readonly string[], told: readonly string[]): void {
  const untold = set.filter((name) => !told.includes(name));
  if (untold.length > 0)
    throw new Error(`${String(field)}: the rule ${untold.join(", ")} isn't told by tools/gen/field-types.ts`);
}
