import type { Inventory } from "../generated/prisma/client.ts";
import { announcedChanges, compare, type Move } from "./compare.ts";
import { componentsInView } from "./components-in-view.ts";
import type { Context, ServiceUnit } from "./context.ts";
import { secondsAfter } from "@runtime-cloud/eventing/database-clock";
import { factsOf } from "./facts.ts";
import { healthOf } from "./health.ts";
import { advanceInventory, lockEnvironment, refuseRetired } from "./inventory.ts";
import type { Sight } from "./look.ts";
import type { Place } from "./observers/observer.ts";
import { recordDrift } from "./record-drift.ts";
import { lookSoon, nextLook } from "./schedule.ts";
import { failedLook, observationFailure, takeIn, type World } from "./world.ts";
import { readWorld, writeWorld } from "./world-rows.ts";

/** Takes a sight in. `changed` is false when nothing but the time moved; one older than the observer's last is ignored. */
export async function recordSight(
  unit: ServiceUnit,
  context: Context,
  place: Place,
  sight: Sight,
): Promise<{ inventory: Inventory; changed: boolean }> {
  const inventory = await lockEnvironment(unit.tx, place);
  refuseRetired(inventory, "observe");
  const known = await readWorld(unit.tx, inventory.id);
  if (isOutdated(known, sight)) return { inventory, changed: false };

  const world = worldIn(sight, known);
  const specifications = "observation" in sight ? sight.observation.specifications : undefined;
  const more = specifications && (await recordDrift(unit, inventory, { at: sight.at, specifications }));
  const { health, moves } = await whatMoved(unit, inventory, { known, world, at: sight.at });
  const resourcesMoved = moves.some(({ path }) => path.startsWith("/resources/"));
  await writeWorld(unit.tx, { environmentId: inventory.id, observer: sight.observer, world, resourcesMoved });
  const columns = { health, observationFailure: observationFailure(world) };
  const settle = "observation" in sight ? freshen : admitFailure;
  const seen = await settle(unit, inventory, { at: sight.at, world, moves, columns });
  if (more) await lookSoon(unit, context, inventory.id);
  else await nextLook(unit, context, inventory.id, sight.at);
  const { staleAt } = seen;
  if (staleAt) unit.after(() => context.arm("staleness", staleAt, { environmentId: inventory.id }));
  return { inventory: seen, changed: seen.version > inventory.version };
}

function worldIn(sight: Sight, known: World): World {
  if ("observation" in sight) return takeIn(known, sight.observer, sight.observation);
  return failedLook(known, sight.observer, sight.failure);
}

function isOutdated({ reports }: World, { observer, at }: Sight): boolean {
  const last = reports.find((report) => report.observer === observer)?.observedAt;
  return last !== null && last !== undefined && at < last;
}

async function whatMoved({ tx }: ServiceUnit, inventory: Inventory, { known, world, at }: Moved) {
  const { staleAfterSeconds } = inventory;
  const before = componentsInView(known, { at: inventory.observedAt ?? at, staleAfterSeconds });
  const after = componentsInView(world, { at, staleAfterSeconds });
  const missing = await tx.finding.count({
    where: { environmentId: inventory.id, kind: "RESOURCE_MISSING", state: { in: ["OPEN", "PROPOSED"] } },
  });
  const failed = observationFailure(world) !== null;
  const health = healthOf({ failed, resources: world.resources.length, missing, components: after });
  const moves = compare(factsOf(known, before, inventory.health), factsOf(world, after, health));
  return { health, moves };
}

/** Another observer may have seen the environment a moment later: the newest sight says how fresh it is. */
async function freshen(unit: ServiceUnit, inventory: Inventory, { at: seenAt, world, moves, columns }: Seen) {
  const at = inventory.observedAt && inventory.observedAt > seenAt ? inventory.observedAt : seenAt;
  const staleAt = secondsAfter(at, inventory.staleAfterSeconds);
  if (moves.length === 0 && inventory.state === "FRESH") {
    return unit.tx.inventory.update({ where: { id: inventory.id }, data: { ...columns, observedAt: at, staleAt } });
  }
  const { currentReleaseId } = world;
  const changes = announcedChanges(moves);
  return advanceInventory(unit, inventory, { type: "observe", at, staleAt, currentReleaseId, changes }, columns);
}

/** A failed look makes nothing fresher. It is announced while consumers still take the environment for fresh. */
async function admitFailure(unit: ServiceUnit, inventory: Inventory, { moves, columns }: Seen) {
  const { state, observedAt: at, staleAt, currentReleaseId } = inventory;
  if (moves.length === 0 || state !== "FRESH" || !at || !staleAt) {
    return unit.tx.inventory.update({ where: { id: inventory.id }, data: columns });
  }
  const changes = announcedChanges(moves);
  return advanceInventory(unit, inventory, { type: "observe", at, staleAt, currentReleaseId, changes }, columns);
}

interface Moved {
  known: World;
  world: World;
  at: Date;
}

interface Seen {
  at: Date;
  world: World;
  moves: readonly Move[];
  columns: Pick<Inventory, "health" | "observationFailure">;
}
