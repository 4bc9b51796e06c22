import type { SyncStatus } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import type { EnumName } from "@runtime-cloud/state-machines/enum-name";
import type { Inventory } from "../../generated/prisma/client.ts";
import type { TrackedVersions } from "./world.ts";

/** What the sync status of an environment is derived from. */
export interface SyncSigns {
  /** It has findings that are OPEN or PROPOSED, and that the last look saw. */
  drifted: boolean;
  /** A version is declared that isn't applied yet. */
  pending: boolean;
  /** It was never seen, or somebody can't see all of it. */
  unsure: boolean;
}

/** A declared version that isn't applied yet is pending, and no drift. */
export function syncOf({ drifted, pending, unsure }: SyncSigns): EnumName<typeof SyncStatus> {
  if (drifted) return "DRIFTED";
  if (pending) return "PENDING_SPECIFICATION";
  return unsure ? "UNKNOWN" : "IN_SYNC";
}

export function isPending(versions: readonly Versions[]): boolean {
  return versions.some(({ declaredVersion, appliedVersion }) => (declaredVersion ?? 0) > (appliedVersion ?? 0));
}

export function isUnsure({ observedAt, observationFailure }: Pick<Inventory, "observedAt" | "observationFailure">) {
  return observedAt === null || observationFailure !== null;
}

type Versions = Pick<TrackedVersions, "declaredVersion" | "appliedVersion">;
