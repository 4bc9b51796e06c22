import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type Environment,
  EnvironmentSchema,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import {
  FindingGrouping,
  Health,
  InventoryState,
  ReconciliationDirection,
  SyncStatus,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { type Inventory, type Prisma, SpecificationKind } from "../../generated/prisma/client.ts";
import { componentComparisons, componentMessage } from "../inventory/component-comparisons.ts";
import { componentsInView } from "../inventory/components-in-view.ts";
import type { Tx } from "../context.ts";
import { NO_FAILURES } from "../observing/observer-backoff.ts";
import { ENGINE } from "../observers/observer.ts";
import { observerSettings, observersMessage } from "../observers/observer-settings.ts";
import { isPending, isUnsure, syncOf } from "../inventory/sync.ts";
import type { KnownResource, Report, TrackedVersions, World } from "../inventory/world.ts";
import { readResources, readWorld } from "../inventory/world-rows.ts";

const MS = 1_000;

/** An environment with all that is known of it, as of `at`. */
export async function readEnvironment(tx: Tx, inventory: Inventory, at: Date): Promise<Environment> {
  const { id, staleAfterSeconds } = inventory;
  const world = await readWorld(tx, id);
  const resources = await readResources(tx, id, Object.values(SpecificationKind));
  const drifted = (await driftedEnvironments(tx, [id])).has(id);
  return create(EnvironmentSchema, {
    ...environmentFields(inventory, { ...world, drifted }),
    components: componentsInView(world, { at, staleAfterSeconds }).map(componentMessage),
    comparisons: componentComparisons(world),
    resources: resources.map(resourceMessage),
  });
}

/** Findings that somebody has to do something about. */
export const DRIFTING = { state: { in: ["OPEN", "PROPOSED"] }, vanishedAt: null } satisfies Prisma.FindingWhereInput;

/** Which of the environments have findings that somebody has to do something about. */
export async function driftedEnvironments(tx: Tx, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const found = await tx.finding.groupBy({
    by: ["environmentId"],
    where: { environmentId: { in: [...ids] }, ...DRIFTING },
  });
  return new Set(found.map(({ environmentId }) => environmentId));
}

/** An environment as lists have it: without components and resources. */
export function environmentMessage(inventory: Inventory, known: Known): Environment {
  return create(EnvironmentSchema, environmentFields(inventory, known));
}

function environmentFields(inventory: Inventory, { specifications, reports, drifted }: Known) {
  const { healthReason, currentReleaseId, observedAt, observationFailure, proposeAfterSeconds } = inventory;
  const configured = observerSettings(inventory.observers);
  const sync = syncOf({ drifted, pending: isPending(specifications), unsure: isUnsure(inventory) });
  return {
    environmentId: inventory.id,
    tenantId: inventory.tenantId,
    projectId: inventory.projectId,
    class: EnvironmentClass[inventory.class],
    state: InventoryState[inventory.state],
    health: Health[inventory.health],
    sync: SyncStatus[sync],
    versions: specifications.map(versionsMessage),
    observers: reportsOf([ENGINE, ...Object.keys(configured)], reports).map(observerMessage),
    observeEvery: durationFromMs(inventory.observeSeconds * MS),
    staleAfter: durationFromMs(inventory.staleAfterSeconds * MS),
    proposeDirection: ReconciliationDirection[inventory.proposeDirection],
    grouping: FindingGrouping[inventory.grouping],
    revision: inventory.revision,
    configuredObservers: observersMessage(configured),
    ...(proposeAfterSeconds !== null && { proposeAfter: durationFromMs(proposeAfterSeconds * MS) }),
    ...(healthReason !== null && { healthReason }),
    ...(currentReleaseId !== null && { currentReleaseId }),
    ...(observedAt && { observedAt: timestampFromDate(observedAt) }),
    ...(observationFailure !== null && { observationFailure }),
  };
}

/** What is known of each observer; of one that hasn't looked yet as well. */
function reportsOf(expected: readonly string[], reports: readonly Report[]): Report[] {
  const silent = expected.filter((observer) => !reports.some((report) => report.observer === observer));
  const unheard = silent.map((observer) => ({ observer, observedAt: null, failure: null, ...NO_FAILURES }));
  return [...reports, ...unheard].sort((a, b) => (a.observer < b.observer ? -1 : 1));
}

function observerMessage({ observer, observedAt, failure, failures, retryAt }: Report) {
  return {
    observer,
    failures,
    ...(observedAt && { observedAt: timestampFromDate(observedAt) }),
    ...(failure !== null && { failure }),
    ...(retryAt && { retryAt: timestampFromDate(retryAt) }),
  };
}

function versionsMessage({ kind, declaredVersion, appliedVersion }: Versions) {
  return {
    kind,
    ...(declaredVersion !== null && { declared: declaredVersion }),
    ...(appliedVersion !== null && { applied: appliedVersion }),
  };
}

function resourceMessage({ address, resourceType, resourceId }: KnownResource) {
  return { address, resourceType, ...(resourceId !== null && { resourceId }) };
}

type Versions = Pick<TrackedVersions, "kind" | "declaredVersion" | "appliedVersion">;

interface Known extends Pick<World, "reports"> {
  specifications: readonly Versions[];
  /** Has findings that are OPEN or PROPOSED, and not vanished. */
  drifted: boolean;
}
