import { z } from "zod";
import type { JsonObject, JsonValue } from "./canonical-json.ts";

/**
 * A value inside what JSON.parse returned. It needs no second walk to be JSON, which counts where a document has many
 * megabytes; for values of any other origin use `z.json()`.
 */
export const parsedJson = z.custom<JsonValue>((value) => value !== undefined);
export const parsedJsonObject = z.custom<JsonObject>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
);
