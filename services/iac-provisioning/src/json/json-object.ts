import type { JsonObject } from "@bufbuild/protobuf";
import { z } from "zod";

const object = z.record(z.string(), z.json());

/** What a JSON column, or an engine, holds as an object, in the form that messages and events take. */
export function jsonObject(value: unknown): JsonObject {
  return object.parse(value);
}
