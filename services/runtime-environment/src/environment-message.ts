import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type Environment,
  EnvironmentSchema,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { Health, InventoryState, SyncStatus } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import type { Inventory } from "../generated/prisma/client.ts";
import { componentsInView } from "./components-in-view.ts";
import type { Tx } from "./context.ts";
import type { ObservedComponent } from "./observers/observer.ts";
import { syncOf } from "./sync.ts";
import type { KnownResource, TrackedVersions } from "./world.ts";
import { readWorld } from "./world-rows.ts";

const MS = 1_000;

/** An environment with all that is known of it, as of `at`. */
export async function readEnvironment(tx: Tx, inventory: Inventory, at: Date): Promise<Environment> {
  const { id, staleAfterSeconds } = inventory;
  const world = await readWorld(tx, id);
  const drifted = (await driftedEnvironments(tx, [id])).has(id);
  return environmentMessage(inventory, {
    ...world,
    components: componentsInView(world, { at, staleAfterSeconds }),
    drifted,
  });
}

/** Which of the environments have findings that somebody has to do something about. */
export async function driftedEnvironments(tx: Tx, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const found = await tx.finding.groupBy({
    by: ["environmentId"],
    where: { environmentId: { in: [...ids] }, state: { in: ["OPEN", "PROPOSED"] } },
  });
  return new Set(found.map(({ environmentId }) => environmentId));
}

export function environmentMessage(inventory: Inventory, known: Known): Environment {
  const { currentReleaseId, observedAt, observationFailure, observeSeconds, staleAfterSeconds } = inventory;
  const { specifications, drifted, components = [], resources = [] } = known;
  const sync = syncOf({ drifted, versions: specifications, observedAt, observationFailure });
  return create(EnvironmentSchema, {
    environmentId: inventory.id,
    tenantId: inventory.tenantId,
    projectId: inventory.projectId,
    class: EnvironmentClass[inventory.class],
    state: InventoryState[inventory.state],
    health: Health[inventory.health],
    sync: SyncStatus[sync],
    versions: specifications.map(versionsMessage),
    components: components.map(({ componentVersion, health, ...component }) => ({
      ...component,
      version: componentVersion,
      health: Health[health],
    })),
    resources: resources.map(resourceMessage),
    observeEvery: durationFromMs(observeSeconds * MS),
    staleAfter: durationFromMs(staleAfterSeconds * MS),
    ...(currentReleaseId !== null && { currentReleaseId }),
    ...(observedAt && { observedAt: timestampFromDate(observedAt) }),
    ...(observationFailure !== null && { observationFailure }),
  });
}

function versionsMessage({ kind, declaredVersion, appliedVersion }: TrackedVersions) {
  return {
    kind,
    ...(declaredVersion !== null && { declared: declaredVersion }),
    ...(appliedVersion !== null && { applied: appliedVersion }),
  };
}

function resourceMessage({ address, resourceType, resourceId }: KnownResource) {
  return { address, resourceType, ...(resourceId !== null && { resourceId }) };
}

interface Known {
  specifications: readonly TrackedVersions[];
  /** Has findings that are OPEN or PROPOSED. */
  drifted: boolean;
  /** Lists leave components and resources out. */
  components?: readonly ObservedComponent[];
  resources?: readonly KnownResource[];
}
