import type { SyncStatus } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import type { EnumName } from "@runtime-cloud/state-machines/enum-name";

/** What the sync status of an environment is derived from. */
export interface SyncSigns {
  /** It has findings that are OPEN or PROPOSED. */
  drifted: boolean;
  versions: readonly { declaredVersion: number | null; appliedVersion: number | null }[];
  observedAt: Date | null;
  observationFailure: string | null;
}

/** A declared version that isn't applied yet is pending, and no drift. */
export function syncOf({ drifted, versions, observedAt, observationFailure }: SyncSigns): EnumName<typeof SyncStatus> {
  if (drifted) return "DRIFTED";
  if (versions.some(isPending)) return "PENDING_SPECIFICATION";
  return observedAt === null || observationFailure !== null ? "UNKNOWN" : "IN_SYNC";
}

function isPending({ declaredVersion, appliedVersion }: SyncSigns["versions"][number]): boolean {
  return (declaredVersion ?? 0) > (appliedVersion ?? 0);
}
