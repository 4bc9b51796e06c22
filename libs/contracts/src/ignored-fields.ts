import { type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { field as fieldRules, Ignore } from "../generated/buf/validate/validate_pb.ts";

/** Whether a field's content is left out of its message's validation: whoever handles it checks it by itself. */
export function isIgnored(field: DescField): boolean {
  let ignored = known.get(field);
  if (ignored === undefined) known.set(field, (ignored = ignores(field)));
  return ignored;
}

/** Options are decoded each time that they are read, which no message should pay for. */
const known = new WeakMap<DescField, boolean>();

function ignores(field: DescField): boolean {
  if (!hasOption(field, fieldRules)) return false;
  const { ignore, type } = getOption(field, fieldRules);
  return ignore === Ignore.ALWAYS || (type.case === "repeated" && type.value.items?.ignore === Ignore.ALWAYS);
}

/** Whether a message may be wrong at all: it, or one within it that isn't ignored, has rules or text. */
export function isCheckable(schema: DescMessage, seen = new Set<DescMessage>()): boolean {
  if (seen.has(schema)) return false;
  seen.add(schema);
  const ruled = schema.proto.options !== undefined || schema.oneofs.some(({ proto }) => proto.options !== undefined);
  return ruled || schema.fields.some((field) => isCheckableField(field, seen));
}

function isCheckableField(field: DescField, seen: Set<DescMessage>): boolean {
  if (hasOption(field, fieldRules) && getOption(field, fieldRules).ignore !== Ignore.ALWAYS) return true;
  if (isIgnored(field)) return false;
  if (field.fieldKind === "map") return true;
  if (field.message) return isCheckable(field.message, seen);
  return field.scalar === ScalarType.STRING;
}
