import type { DriftKind, EnvironmentClass, FindingSeverity } from "../../generated/prisma/client.ts";

/** From least to most. */
const ascending: readonly FindingSeverity[] = ["LOW", "MEDIUM", "HIGH", "CRITICAL"];

const usual: Readonly<Record<DriftKind, FindingSeverity>> = {
  RESOURCE_MISSING: "HIGH",
  RESOURCE_UNMANAGED: "MEDIUM",
  ATTRIBUTE_CHANGED: "MEDIUM",
  VERSION_MISMATCH: "HIGH",
  REPLICA_MISMATCH: "MEDIUM",
  HEALTH_DEGRADED: "HIGH",
};
const inProduction: Readonly<Partial<Record<DriftKind, FindingSeverity>>> = {
  RESOURCE_MISSING: "CRITICAL",
  ATTRIBUTE_CHANGED: "HIGH",
};

/** How much a drift matters: by its kind, by the class of its environment, and by whether anything is left at all. */
export function severityOf({ kind, observed }: Drift, environmentClass: EnvironmentClass): FindingSeverity {
  if (kind === "HEALTH_DEGRADED" && observed === "MISSING") return "CRITICAL";
  return (environmentClass === "PRODUCTION" ? inProduction[kind] : undefined) ?? usual[kind];
}

/** A severity and all that are worse. */
export function atLeast(severity: FindingSeverity): FindingSeverity[] {
  return ascending.slice(ascending.indexOf(severity));
}

interface Drift {
  kind: DriftKind;
  observed: unknown;
}
