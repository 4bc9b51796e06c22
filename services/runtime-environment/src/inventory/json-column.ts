import { fromJsonString, type JsonValue } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { Prisma } from "../../generated/prisma/client.ts";

/** A JSON value for a nullable column: null is SQL's, so that a column has one way to say nothing. */
export function jsonColumn(value: JsonValue): Prisma.InputJsonValue | typeof Prisma.DbNull {
  return value ?? Prisma.DbNull;
}

/** What a JSON column holds, as a message. */
export function valueMessage(column: Prisma.JsonValue): Value {
  return fromJsonString(ValueSchema, JSON.stringify(column));
}
