import type { DriftOrigin } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import type { EnumName } from "@runtime-cloud/state-machines/enum-name";
import type { SpecificationKind } from "../../generated/prisma/client.ts";
import { isPending } from "../inventory/sync.ts";
import type { TrackedVersions } from "../inventory/world.ts";

/** Who moved since the specification was applied: the world alone, or the specification too, by a version yet to apply. */
export function originOf(kind: SpecificationKind, tracked: readonly Versions[]): EnumName<typeof DriftOrigin> {
  return isPending(tracked.filter((each) => each.kind === kind)) ? "WORLD_AND_SPECIFICATION" : "WORLD";
}

export type Versions = Pick<TrackedVersions, "kind" | "declaredVersion" | "appliedVersion">;
