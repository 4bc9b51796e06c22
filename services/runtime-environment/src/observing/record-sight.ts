import type { Inventory, SpecificationKind } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { jitterOf } from "./observer-backoff.ts";
import type { Sight } from "./look.ts";
import { recordDrift } from "../findings/record-drift.ts";
import { type ResourceDifferences, resourceDifferences } from "../inventory/resource-differences.ts";
import { lookSoon } from "./schedule.ts";
import { settleSight } from "./settle-sight.ts";
import { whatMoved } from "../inventory/what-moved.ts";
import { failedLook, reportOf, takeIn, type World } from "../inventory/world.ts";
import { type KnownWorld, readResources, readWorld } from "../inventory/world-rows.ts";
import { writeWorld } from "../inventory/write-world.ts";

/**
 * Takes in what one observer saw, or that it couldn't look; `before` is what was known when the look began. A look that
 * moved nothing writes the times and no other row; one that is older than the observer's last, or than what has been
 * applied meanwhile, is ignored. The environment must be locked, and not retired.
 */
export async function recordSight(
  unit: ServiceUnit,
  context: Context,
  inventory: Inventory,
  { sight, before }: Seen,
): Promise<Recorded> {
  const known = await readWorld(unit.tx, inventory.id);
  if (isOutdated(known, sight) || isOvertaken(known, sight, before)) return { inventory, outcome: "ignored" };
  const looked = { known, world: worldIn(sight, known, { id: inventory.id, now: unit.at }), sight };

  const resources = await whatBecameOfResources(unit, inventory, looked);
  const more = await recordDrift(unit, inventory, looked);
  const moved = await whatMoved(unit, inventory, { ...looked, resources });
  await writeWorld(unit.tx, { environmentId: inventory.id, observer: sight.observer, ...looked, resources });
  const seen = await settleSight(unit, inventory, { ...looked, ...moved });
  if (more) await lookSoon(unit, context, inventory.id);
  const { staleAt } = seen;
  if (staleAt) unit.after(() => context.arm("staleness", staleAt));
  if ("failure" in sight) return { inventory: seen, outcome: "failed" };
  return { inventory: seen, outcome: seen.version > inventory.version ? "changed" : "unchanged" };
}

export interface Seen {
  sight: Sight;
  /** The environment's world when the look began. */
  before: World;
}

/** What came of a sight. */
export interface Recorded {
  inventory: Inventory;
  /** One that is ignored is older than what is known. */
  outcome: "changed" | "unchanged" | "failed" | "ignored";
}

/** An environment before and after an observer's look. */
export interface Looked {
  known: KnownWorld;
  world: World;
  sight: Sight;
}

export function isOutdated(known: World, { observer, at }: Sight): boolean {
  const last = reportOf(known, observer)?.observedAt;
  return last !== null && last !== undefined && at < last;
}

/**
 * Whether another version has become known as applied while the engine looked, and it didn't see that one: what it says
 * is about what was there before. By versions, since the clocks of two processes are never quite the same.
 */
function isOvertaken(known: World, sight: Sight, before: World): boolean {
  const seen = "observation" in sight ? sight.observation.specifications : undefined;
  if (!seen) return false;
  const versionOf = (kind: SpecificationKind) => seen.find((each) => each.kind === kind)?.version ?? null;
  return known.specifications.some(({ kind, appliedVersion }) => {
    const was = before.specifications.find((each) => each.kind === kind)?.appliedVersion ?? null;
    return appliedVersion !== was && appliedVersion !== versionOf(kind);
  });
}

function worldIn(sight: Sight, known: World, { id, now }: { id: string; now: Date }): World {
  const { observer } = sight;
  if ("observation" in sight) return takeIn(known, observer, sight.observation);
  return failedLook(known, observer, { failure: sight.failure, at: now, jitter: jitterOf(`${id}/${observer}`) });
}

/** Resources are read only of the kinds whose inspection lists others than were known. */
async function whatBecameOfResources(
  { tx }: ServiceUnit,
  { id }: Inventory,
  { known, world, sight }: Looked,
): Promise<ResourceDifferences> {
  const digests = new Map(known.specifications.map(({ kind, resourcesDigest }) => [kind, resourcesDigest]));
  const kinds = world.specifications
    .filter(({ kind, resourcesDigest }) => (digests.get(kind) ?? null) !== resourcesDigest)
    .map(({ kind }) => kind);
  if (kinds.length === 0) return { moves: [], written: [], gone: [] };
  const specifications = "observation" in sight ? (sight.observation.specifications ?? []) : [];
  const seen = specifications
    .filter(({ kind }) => kinds.includes(kind))
    .flatMap(({ kind, resources }) => resources.map((resource) => ({ ...resource, kind })));
  return resourceDifferences(await readResources(tx, id, kinds), seen);
}
