import { ProvisioningKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { Inventory, Proposal, SpecificationKind } from "../../generated/prisma/client.ts";
import { announcedChanges, pointer } from "./compare.ts";
import type { ServiceUnit } from "../context.ts";
import { advanceInventory } from "./inventory.ts";
import { recordChange } from "./inventory-changes.ts";

/** A declared version, whatever the order in which they are told: the newest stays. The environment must be locked. */
export async function trackDeclared(unit: ServiceUnit, inventory: Inventory, declared: Declared): Promise<void> {
  const { kind, version, specificationId } = declared;
  const key = { inventoryId_kind: { inventoryId: inventory.id, kind } };
  const known = await unit.tx.trackedSpecification.findUnique({ where: key });
  const from = known?.declaredVersion ?? null;
  if ((from ?? 0) >= version) return;
  const newest = { declaredVersion: version, declaredSpecificationId: specificationId };
  await unit.tx.trackedSpecification.upsert({
    where: key,
    create: { inventoryId: inventory.id, kind, ...newest },
    update: newest,
  });
  const moves = [{ path: pointer("versions", kind, "declared"), from, to: version }];
  await recordChange(unit, inventory, { moves });
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
    appliedAt: unit.at,
  };
  await unit.tx.trackedSpecification.upsert({
    where: key,
    create: { inventoryId: inventory.id, kind, ...applied },
    update: applied,
  });
  const { state, observedAt: at, staleAt, currentReleaseId } = inventory;
  const moves = [{ path: pointer("versions", kind, "applied"), from, to: version }];
  if (state !== "FRESH" || !at || !staleAt) {
    await recordChange(unit, inventory, { moves });
    return;
  }
  const event = { type: "observe" as const, at, staleAt, currentReleaseId, changes: announcedChanges(moves) };
  await advanceInventory(unit, inventory, event, { moves });
}

/** The kind of specification that a run of this kind applies; a reconciliation applies what is applied already. */
export function appliedKind(kind: ProvisioningKind): SpecificationKind | undefined {
  return kinds.get(kind);
}

/** The kind of the version that a proposal has declared to adopt what is there; undefined where it adopts nothing. */
export async function adoptedKind({ tx }: ServiceUnit, proposal: Proposal): Promise<SpecificationKind | undefined> {
  const { environmentId: inventoryId, adoptedId: declaredSpecificationId } = proposal;
  if (declaredSpecificationId === null) return undefined;
  const tracked = await tx.trackedSpecification.findFirst({ where: { inventoryId, declaredSpecificationId } });
  return tracked?.kind;
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
