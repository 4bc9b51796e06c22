import { isDeepStrictEqual } from "node:util";
import { type Inventory, Prisma } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";
import type { ResourceDifferences } from "./resource-differences.ts";
import type { Report, ReportedComponent, TrackedVersions, World } from "./world.ts";

/** Writes what one observer's look made of what was known: only rows that are different, those of a table at once. */
export async function writeWorld(tx: Tx, written: Written): Promise<void> {
  await writeComponents(tx, written);
  await writeVersions(tx, written);
  await writeResources(tx, written.environmentId, written.resources);
}

/** Writes how an observer fared, whatever it was. */
export async function writeReport(tx: Tx, environmentId: string, report: Report): Promise<void> {
  await tx.$executeRaw(reportPart(environmentId, report));
}

/** The same, and how the environment is by now, in one statement: all that a look writes that moved nothing. */
export async function writeTimes(tx: Tx, inventory: Inventory, report: Report): Promise<void> {
  const { id, observedAt, staleAt, health, healthReason, observationFailure } = inventory;
  await tx.$executeRaw`
    WITH reported AS (${reportPart(id, report)})
    UPDATE inventory SET observed_at = ${observedAt}, stale_at = ${staleAt}, health = ${health}::text::"Health",
      health_reason = ${healthReason}, observation_failure = ${observationFailure}
    WHERE id = ${id}`;
}

function reportPart(environmentId: string, { observer, observedAt, failure, failures, retryAt }: Report): Prisma.Sql {
  return Prisma.sql`
    INSERT INTO observer_report (inventory_id, observer, observed_at, failure, failures, retry_at)
    VALUES (${environmentId}, ${observer}, ${observedAt}, ${failure}, ${failures}, ${retryAt})
    ON CONFLICT (inventory_id, observer) DO UPDATE SET observed_at = excluded.observed_at,
      failure = excluded.failure, failures = excluded.failures, retry_at = excluded.retry_at`;
}

/** Whether a look leaves every row of the world as it is, but for its report. */
export function isAsWritten(known: World, world: World, observer: string): boolean {
  const { written, gone } = componentDifferences(known, world, observer);
  return written.length + gone.length + versionDifferences(known, world).length === 0;
}

function componentDifferences(known: World, world: World, observer: string) {
  const isIts = (component: ReportedComponent) => component.observer === observer;
  const before = new Map(known.components.filter(isIts).map((component) => [component.name, component]));
  const seen = world.components.filter(isIts);
  const written = seen.filter((component) => !isDeepStrictEqual(before.get(component.name), component));
  for (const { name } of seen) before.delete(name);
  return { written, gone: [...before.keys()] };
}

function versionDifferences(known: World, world: World): TrackedVersions[] {
  const before = new Map(known.specifications.map((versions) => [versions.kind, versions]));
  return world.specifications.filter((versions) => !isDeepStrictEqual(before.get(versions.kind), versions));
}

async function writeComponents(tx: Tx, { environmentId: inventoryId, observer, known, world }: Written): Promise<void> {
  const { written, gone } = componentDifferences(known, world, observer);
  if (written.length + gone.length === 0) return;
  await tx.$executeRaw`
    WITH gone AS (
      DELETE FROM component
      WHERE inventory_id = ${inventoryId} AND observer = ${observer} AND name = ANY (${gone}::text[])
    )
    INSERT INTO component (inventory_id, observer, name, component_version, replicas_desired, replicas_ready, health,
      health_reason, health_url, version_url)
    SELECT ${inventoryId}, ${observer}, name, "componentVersion", "replicasDesired", "replicasReady",
      health::"Health", "healthReason", "healthUrl", "versionUrl"
    FROM jsonb_to_recordset(${JSON.stringify(written)}::jsonb) AS seen
      (name text, "componentVersion" text, "replicasDesired" int, "replicasReady" int, health text,
       "healthReason" text, "healthUrl" text, "versionUrl" text)
    ON CONFLICT (inventory_id, observer, name) DO UPDATE SET component_version = excluded.component_version,
      replicas_desired = excluded.replicas_desired, replicas_ready = excluded.replicas_ready,
      health = excluded.health, health_reason = excluded.health_reason,
      health_url = excluded.health_url, version_url = excluded.version_url`;
}

async function writeVersions(tx: Tx, { environmentId: inventoryId, known, world }: Written): Promise<void> {
  const written = versionDifferences(known, world);
  if (written.length === 0) return;
  await tx.$executeRaw`
    INSERT INTO tracked_specification (inventory_id, kind, declared_version, declared_specification_id,
      applied_version, applied_specification_id, applied_at, resource_count, resources_digest)
    SELECT ${inventoryId}, kind::"SpecificationKind", "declaredVersion", "declaredSpecificationId", "appliedVersion",
      "appliedSpecificationId", "appliedAt", "resourceCount", "resourcesDigest"
    FROM jsonb_to_recordset(${JSON.stringify(written)}::jsonb) AS seen
      (kind text, "declaredVersion" int, "declaredSpecificationId" uuid, "appliedVersion" int,
       "appliedSpecificationId" uuid, "appliedAt" timestamptz, "resourceCount" int, "resourcesDigest" text)
    ON CONFLICT (inventory_id, kind) DO UPDATE SET declared_version = excluded.declared_version,
      declared_specification_id = excluded.declared_specification_id, applied_version = excluded.applied_version,
      applied_specification_id = excluded.applied_specification_id, applied_at = excluded.applied_at,
      resource_count = excluded.resource_count, resources_digest = excluded.resources_digest`;
}

async function writeResources(tx: Tx, inventoryId: string, { written, gone }: ResourceDifferences): Promise<void> {
  if (written.length + gone.length === 0) return;
  await tx.$executeRaw`
    WITH gone AS (
      DELETE FROM resource USING unnest(
        ${gone.map(({ kind }) => kind)}::text[], ${gone.map(({ address }) => address)}::text[]) AS g (kind, address)
      WHERE inventory_id = ${inventoryId} AND resource.kind = g.kind::"SpecificationKind"
        AND resource.address = g.address
    )
    INSERT INTO resource (inventory_id, kind, address, resource_type, resource_id)
    SELECT ${inventoryId}, kind::"SpecificationKind", address, "resourceType", "resourceId"
    FROM jsonb_to_recordset(${JSON.stringify(written)}::jsonb) AS seen
      (kind text, address text, "resourceType" text, "resourceId" text)
    ON CONFLICT (inventory_id, kind, address) DO UPDATE SET resource_type = excluded.resource_type,
      resource_id = excluded.resource_id`;
}

interface Written {
  environmentId: string;
  observer: string;
  known: World;
  world: World;
  resources: ResourceDifferences;
}
