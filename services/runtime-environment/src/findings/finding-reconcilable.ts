import type { DriftKind } from "../../generated/prisma/client.ts";

/** Whether a run can close drift of this kind. Applying a specification again makes nothing healthier. */
export function isReconcilable(kind: DriftKind): boolean {
  return kind !== "HEALTH_DEGRADED";
}
