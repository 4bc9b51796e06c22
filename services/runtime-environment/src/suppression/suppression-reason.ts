import type { FieldViolation } from "@runtime-cloud/service-kit/errors";

/** What is wrong with the reason of a suppression. */
export function reasonViolations(reason: string): FieldViolation[] {
  return reason.trim() === "" ? [{ field: "reason", description: "must say why this is expected" }] : [];
}
