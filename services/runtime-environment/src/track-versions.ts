import { ProvisioningKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { Inventory, SpecificationKind } from "../generated/prisma/client.ts";
import { announcedChanges, pointer } from "./compare.ts";
import type { ServiceUnit } from "./context.ts";
import { advanceInventory } from "./inventory.ts";

/** A declared version, whatever the order in which they are told: the newest stays. The environment must be locked. */
export async function trackDeclared({ tx }: ServiceUnit, inventoryId: string, declared: Declared): Promise<void> {
  const { kind, version, specificationId } = declared;
  const known = await tx.trackedSpecification.findUnique({ where: { inventoryId_kind: { inventoryId, kind } } });
  if ((known?.declaredVersion ?? 0) >= version) return;
  const newest = { declaredVersion: version, declaredSpecificationId: specificationId };
  await tx.trackedSpecification.upsert({
    where: { inventoryId_kind: { inventoryId, kind } },
    create: { inventoryId, kind, ...newest },
    update: newest,
  });
}

/**
 * A version of which a run says that it is applied; the newest stays. It is announced here while the environment is
 * fresh, else by the observation that follows. The environment must be locked.
 */
export async function trackApplied(unit: ServiceUnit, inventory: Inventory, { kind, version }: Applied): Promise<void> {
  const key = { inventoryId_kind: { inventoryId: inventory.id, kind } };
  const known = await unit.tx.trackedSpecification.findUnique({ where: key });
  const from = known?.appliedVersion ?? null;
  if ((from ?? 0) >= version) return;
  const isDeclared = known?.declaredVersion === version;
  const applied = {
    appliedVersion: version,
    appliedSpecificationId: isDeclared ? known.declaredSpecificationId : null,
  };
  await unit.tx.trackedSpecification.upsert({
    where: key,
    create: { inventoryId: inventory.id, kind, ...applied },
    update: applied,
  });
  const { state, observedAt: at, staleAt, currentReleaseId } = inventory;
  if (state !== "FRESH" || !at || !staleAt) return;
  const changes = announcedChanges([{ path: pointer("versions", kind, "applied"), from, to: version }]);
  await advanceInventory(unit, inventory, { type: "observe", at, staleAt, currentReleaseId, changes });
}

/** The kind of specification that a run of this kind applies; a reconciliation applies what is applied already. */
export function appliedKind(kind: ProvisioningKind): SpecificationKind | undefined {
  return kinds.get(kind);
}

const kinds: ReadonlyMap<ProvisioningKind, SpecificationKind> = new Map([
  [ProvisioningKind.BASELINE, "BASELINE"],
  [ProvisioningKind.PROMOTION, "RELEASE"],
  [ProvisioningKind.POOL_RESIZE, "WORKER_POOL"],
]);

interface Applied {
  kind: SpecificationKind;
  version: number;
}

type Declared = Applied & { specificationId: string };
