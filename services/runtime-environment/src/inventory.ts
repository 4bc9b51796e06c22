import { commit } from "@runtime-cloud/eventing/commit";
import { accept } from "@runtime-cloud/eventing/decision";
import { IllegalTransition, NotFound } from "@runtime-cloud/service-kit/errors";
import { type InventoryEvent, runtimeInventory } from "@runtime-cloud/state-machines/runtime-inventory";
import type { Inventory, Prisma } from "../generated/prisma/client.ts";
import type { ServiceUnit, Tx } from "./context.ts";
import type { Place } from "./observers/observer.ts";

/**
 * Locks an environment until the transaction ends. Everything that changes an environment, its findings or its
 * proposals takes this lock first, so two observers, or a decision and an observation, come one after the other.
 */
export async function lockEnvironment(tx: Tx, { id, tenantId }: Place): Promise<Inventory> {
  const [locked] = await tx.$queryRaw<{ id: string }[]>`
    SELECT id FROM inventory WHERE id = ${id} AND tenant_id = ${tenantId} FOR UPDATE`;
  if (!locked) throw unknownEnvironment(id);
  return tx.inventory.findUniqueOrThrow({ where: { id } });
}

export function unknownEnvironment(id: string): NotFound {
  return new NotFound(`environment ${id} does not exist`);
}

/** For what isn't a transition, and yet nothing that a retired environment takes. */
export function refuseRetired({ id, state }: Inventory, event: string): void {
  if (state !== "RETIRED") return;
  throw new IllegalTransition({
    aggregate: "RuntimeInventory",
    id,
    state,
    event,
    reason: "not-in-this-state",
    allowed: [],
  });
}

export async function advanceInventory(
  unit: ServiceUnit,
  inventory: Inventory,
  event: InventoryEvent,
  also: Prisma.InventoryUncheckedUpdateInput = {},
): Promise<Inventory> {
  return commit(unit, accept(runtimeInventory, inventory, event), (columns) =>
    unit.tx.inventory.update({
      where: { id: inventory.id, version: inventory.version },
      data: { ...also, ...columns, version: { increment: 1 } },
    }),
  );
}
