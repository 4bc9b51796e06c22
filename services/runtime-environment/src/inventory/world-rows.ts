import type { SpecificationKind } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";
import type { KnownResource, Report, TrackedVersions, World } from "./world.ts";

/** An environment's world, and how many of its findings aren't resolved. */
export type KnownWorld = World & { unresolved: number };

/** Reads what is known of an environment: one query, whatever it has. */
export async function readWorld(tx: Tx, environmentId: string): Promise<KnownWorld> {
  const [row] = await tx.$queryRaw<WorldRow[]>`
    SELECT current_release_id AS "currentReleaseId",
      (SELECT count(*)::int FROM finding WHERE environment_id = inventory.id AND state <> 'RESOLVED') AS unresolved,
      (SELECT coalesce(jsonb_agg(jsonb_build_object(
          'kind', kind, 'declaredVersion', declared_version, 'declaredSpecificationId', declared_specification_id,
          'appliedVersion', applied_version, 'appliedSpecificationId', applied_specification_id, 'appliedAt', applied_at,
          'resourceCount', resource_count, 'resourcesDigest', resources_digest) ORDER BY kind), '[]')
        FROM tracked_specification WHERE inventory_id = inventory.id) AS specifications,
      (SELECT coalesce(jsonb_agg(jsonb_build_object(
          'observer', observer, 'name', name, 'componentVersion', component_version,
          'replicasDesired', replicas_desired, 'replicasReady', replicas_ready, 'health', health,
          'healthReason', health_reason,
          'healthUrl', health_url, 'versionUrl', version_url) ORDER BY observer, name), '[]')
        FROM component WHERE inventory_id = inventory.id) AS components,
      (SELECT coalesce(jsonb_agg(jsonb_build_object(
          'observer', observer, 'observedAt', observed_at, 'failure', failure,
          'failures', failures, 'retryAt', retry_at) ORDER BY observer), '[]')
        FROM observer_report WHERE inventory_id = inventory.id) AS reports
    FROM inventory WHERE id = ${environmentId}`;
  if (!row) throw new Error(`environment ${environmentId} went away while it was read`);
  const specifications = row.specifications.map(versionsOfRow);
  return { ...row, specifications, reports: row.reports.map(reportOfRow) };
}

/** The resources of some kinds of specification. */
export async function readResources(
  tx: Tx,
  inventoryId: string,
  kinds: readonly SpecificationKind[],
): Promise<KnownResource[]> {
  return tx.$queryRaw<KnownResource[]>`
    SELECT kind::text AS kind, address, resource_type AS "resourceType", resource_id AS "resourceId"
    FROM resource WHERE inventory_id = ${inventoryId} AND kind::text = ANY (${[...kinds]}::text[])
    ORDER BY kind, address`;
}

type Text = string | null;
type ReportRow = Omit<Report, "observedAt" | "retryAt"> & { observedAt: Text; retryAt: Text };
type VersionsRow = Omit<TrackedVersions, "appliedAt"> & { appliedAt: Text };
type WorldRow = Omit<KnownWorld, "reports" | "specifications"> & {
  reports: readonly ReportRow[];
  specifications: readonly VersionsRow[];
};

function versionsOfRow({ appliedAt, ...versions }: VersionsRow): TrackedVersions {
  return { ...versions, appliedAt: instantOf(appliedAt) };
}

function reportOfRow({ observedAt, retryAt, ...report }: ReportRow): Report {
  return { ...report, observedAt: instantOf(observedAt), retryAt: instantOf(retryAt) };
}

function instantOf(text: Text): Date | null {
  return text === null ? null : new Date(text);
}
