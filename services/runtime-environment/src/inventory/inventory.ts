import { commit } from "@runtime-cloud/eventing/commit";
import { accept } from "@runtime-cloud/eventing/decision";
import { IllegalTransition, NotFound } from "@runtime-cloud/service-kit/errors";
import { type InventoryEvent, runtimeInventory } from "@runtime-cloud/state-machines/runtime-inventory";
import type { Inventory, Prisma } from "../../generated/prisma/client.ts";
import { type Move, pointer } from "./compare.ts";
import type { ServiceUnit, Tx } from "../context.ts";
import { recordFacts } from "./inventory-changes.ts";
import type { Place } from "../observers/observer.ts";

/**
 * Locks an environment until the transaction ends. Everything that changes an environment, its findings or its
 * proposals takes this lock first, so two observers, or a decision and an observation, come one after the other.
 */
export async function lockEnvironment(tx: Tx, { id, tenantId }: Place): Promise<Inventory> {
  // In one statement: whoever waits for the lock reads the row as it is once it has it.
  const [locked] = await tx.$queryRaw<Inventory[]>`
    SELECT id, version, state::text AS state, tenant_id AS "tenantId", project_id AS "projectId", class::text AS class,
      health::text AS health, health_reason AS "healthReason", current_release_id AS "currentReleaseId",
      observed_at AS "observedAt", stale_at AS "staleAt", observation_failure AS "observationFailure", observe_at AS "observeAt",
      look_correlation_id AS "lookCorrelationId", look_causation_id AS "lookCausationId",
      look_traceparent AS "lookTraceparent", observe_seconds AS "observeSeconds",
      stale_after_seconds AS "staleAfterSeconds", propose_after_seconds AS "proposeAfterSeconds",
      propose_direction::text AS "proposeDirection", grouping::text AS "grouping", observers, revision,
      created_at AS "createdAt"
    FROM inventory WHERE id = ${id} AND tenant_id = ${tenantId} FOR UPDATE`;
  if (!locked) throw unknownEnvironment(id);
  return locked;
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

/**
 * Sends an environment its event, and records what that changed as its next revision: its state, and the `moves`.
 * `actor` is the cause's unless given. `also` are columns that no machine decides on.
 */
export async function advanceInventory(
  unit: ServiceUnit,
  inventory: Inventory,
  event: InventoryEvent,
  { also = {}, moves = [], actor = unit.cause.actor }: Advance = {},
): Promise<Inventory> {
  const accepted = accept(runtimeInventory, inventory, event);
  const row = await commit(unit, accepted, (columns) =>
    unit.tx.inventory.update({
      where: { id: inventory.id, version: inventory.version },
      data: { ...also, ...columns, version: { increment: 1 }, revision: { increment: 1 } },
    }),
  );
  const state = { path: pointer("state"), from: inventory.state, to: row.state };
  await recordFacts(unit, row, { actor, moves: row.state === inventory.state ? moves : [state, ...moves] });
  return row;
}

interface Advance {
  also?: Prisma.InventoryUncheckedUpdateInput;
  moves?: readonly Move[];
  actor?: string;
}
