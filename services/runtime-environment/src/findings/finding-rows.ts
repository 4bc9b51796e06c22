import type { Saved } from "@runtime-cloud/eventing/commit-all";
import type { Finding, Prisma } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";

/*
 * Findings are written by one statement however many there are. Their rows go in as JSON under the names that they have
 * here, and its null is SQL's.
 */

/** A finding before the database gives its JSON columns their form. */
export type NewFinding = Omit<Finding, "declared" | "observed"> & Values;

/** Inserts new findings as they are, their version included. */
export async function insertFindings(tx: Tx, findings: readonly NewFinding[]): Promise<Saved[]> {
  return tx.$queryRaw<Saved[]>`
    INSERT INTO finding (id, version, state, tenant_id, project_id, environment_id, specification_kind,
      specification_id, fingerprint, kind, resource, attribute, declared, observed, first_seen_at, last_seen_at,
      changed_at, vanished_at, occurrences, severity, observer, previous_finding_id, suppression_rule_id, proposal_id,
      suppressed_reason, suppressed_until, resolved_at)
    SELECT * FROM jsonb_to_recordset(${JSON.stringify(findings)}::jsonb) AS born (
      "id" uuid, "version" int, "state" "FindingState", "tenantId" text, "projectId" text, "environmentId" text,
      "specificationKind" "SpecificationKind", "specificationId" uuid, "fingerprint" text, "kind" "DriftKind",
      "resource" text, "attribute" text, "declared" jsonb, "observed" jsonb, "firstSeenAt" timestamptz,
      "lastSeenAt" timestamptz, "changedAt" timestamptz, "vanishedAt" timestamptz, "occurrences" int,
      "severity" "FindingSeverity", "observer" text, "previousFindingId" uuid, "suppressionRuleId" uuid,
      "proposalId" uuid, "suppressedReason" text, "suppressedUntil" timestamptz, "resolvedAt" timestamptz)
    RETURNING id::text AS id, version`;
}

/**
 * Writes what transitions changed; `version` is the one after. A row that has another version by now isn't written. What
 * is resolved no longer stays away.
 */
export async function updateFindings(tx: Tx, findings: readonly Finding[]): Promise<Saved[]> {
  const rows = findings.map(({ id, version, state, proposalId, resolvedAt, ...finding }) => {
    const { suppressedReason, suppressedUntil, suppressionRuleId } = finding;
    return { id, version, state, proposalId, resolvedAt, suppressedReason, suppressedUntil, suppressionRuleId };
  });
  return tx.$queryRaw<Saved[]>`
    UPDATE finding SET version = moved.version, state = moved.state, proposal_id = moved."proposalId",
      suppressed_reason = moved."suppressedReason", suppressed_until = moved."suppressedUntil",
      suppression_rule_id = moved."suppressionRuleId", resolved_at = moved."resolvedAt",
      vanished_at = CASE WHEN moved.state = 'RESOLVED' THEN NULL ELSE finding.vanished_at END
    FROM jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) AS moved (
      "id" uuid, "version" int, "state" "FindingState", "proposalId" uuid, "resolvedAt" timestamptz,
      "suppressedReason" text, "suppressedUntil" timestamptz, "suppressionRuleId" uuid)
    WHERE finding.id = moved.id AND finding.version = moved.version - 1
    RETURNING finding.id::text AS id, finding.version`;
}

/** Writes what is seen of findings that moved or came back: no transition, since they drift as before. */
export async function updateSeen(tx: Tx, seen: readonly SeenAgain[], { at, changedAt }: Instants): Promise<void> {
  if (seen.length === 0) return;
  await tx.$executeRaw`
    UPDATE finding SET specification_id = seen."specificationId", declared = seen.declared, observed = seen.observed,
      severity = seen.severity, occurrences = finding.occurrences + 1, last_seen_at = ${at}, changed_at = ${changedAt},
      vanished_at = NULL
    FROM jsonb_to_recordset(${JSON.stringify(seen)}::jsonb) AS seen (
      "id" uuid, "specificationId" uuid, "declared" jsonb, "observed" jsonb, "severity" "FindingSeverity")
    WHERE finding.id = seen.id`;
}

/** Counts findings that were seen as they were. */
export async function countAgain(tx: Tx, ids: readonly string[], at: Date): Promise<void> {
  await tx.$executeRaw`
    UPDATE finding SET occurrences = occurrences + 1, last_seen_at = ${at} WHERE id = ANY (${[...ids]}::uuid[])`;
}

/** Notes that findings weren't seen. */
export async function markVanished(tx: Tx, ids: readonly string[], vanishedAt: Date): Promise<void> {
  if (ids.length === 0) return;
  await tx.$executeRaw`UPDATE finding SET vanished_at = ${vanishedAt} WHERE id = ANY (${[...ids]}::uuid[])`;
}

interface Values {
  declared: Prisma.JsonValue | undefined;
  observed: Prisma.JsonValue | undefined;
}

export type SeenAgain = Pick<Finding, "id" | "specificationId" | "severity"> & Values;

interface Instants {
  at: Date;
  changedAt: Date;
}
