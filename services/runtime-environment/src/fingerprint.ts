import { createHash } from "node:crypto";
import type { ReconciliationDirection, SpecificationKind } from "../generated/prisma/client.ts";
import type { ObservedDrift } from "./observers/observer.ts";

/**
 * What makes two sightings the same finding. The kind of specification is part of it, since each kind has resources of
 * its own under the same addresses.
 */
export function fingerprintOf(
  environmentId: string,
  specificationKind: SpecificationKind,
  drift: ObservedDrift,
): string {
  return sha256([environmentId, specificationKind, drift.resource, drift.attribute, drift.kind]);
}

/**
 * What a decision is about: which way, on which specification, and every drifted fact with the value that was seen.
 * Values must come out of their column, which gives the keys of objects one order.
 */
export function proposalDigest({ direction, specificationId, findings }: Digested): string {
  const facts = findings.map(({ fingerprint, observed }) => [fingerprint, observed] as const);
  return sha256([direction, specificationId, facts.sort(([a], [b]) => (a < b ? -1 : 1))]);
}

function sha256(value: unknown): string {
  return `sha256:${createHash("sha256").update(JSON.stringify(value)).digest("hex")}`;
}

export interface Digested {
  direction: ReconciliationDirection;
  specificationId: string;
  findings: readonly { fingerprint: string; observed: unknown }[];
}
