import { createHash } from "node:crypto";
import type { ReconciliationDirection } from "../../generated/prisma/client.ts";

/**
 * What a decision is about: which way, on which specification, every drifted fact with the value that was seen, and the
 * preview's plan once it is there. Values must come out of their column, which gives the keys of objects one order.
 */
export function proposalDigest({ direction, specificationId, findings, planDigest }: Digested): string {
  const facts = findings.map(({ fingerprint, observed }) => [fingerprint, observed] as const);
  const plan = planDigest === null ? [] : [planDigest];
  const said = JSON.stringify([direction, specificationId, facts.sort(([a], [b]) => (a < b ? -1 : 1)), ...plan]);
  return `sha256:${createHash("sha256").update(said).digest("hex")}`;
}

export interface Digested {
  direction: ReconciliationDirection;
  specificationId: string;
  findings: readonly { fingerprint: string; observed: unknown }[];
  planDigest: string | null;
}
