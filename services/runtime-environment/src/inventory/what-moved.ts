import type { Inventory } from "../../generated/prisma/client.ts";
import { compare, inOrder, type Move } from "./compare.ts";
import { componentsInView } from "./components-in-view.ts";
import type { ServiceUnit } from "../context.ts";
import { factsOf } from "./facts.ts";
import { healthOf, type Judgement } from "./health.ts";
import type { Looked } from "../observing/record-sight.ts";
import type { ResourceDifferences } from "./resource-differences.ts";
import { observationFailure } from "./world.ts";

export interface Moved extends Judgement {
  moves: readonly Move[];
}

/** What a look changes of the facts that consumers hear of. The findings must be up to it already. */
export async function whatMoved(
  unit: ServiceUnit,
  inventory: Inventory,
  looked: Looked & { resources: ResourceDifferences },
): Promise<Moved> {
  const { moves, ...judgement } = movedBy(inventory, looked, await missingResources(unit, inventory, looked));
  return { ...judgement, moves: inOrder([...moves, ...looked.resources.moves]) };
}

/** The same, apart from resources, where so many applied ones are `missing`. */
export function movedBy(inventory: Inventory, { known, world, sight }: Looked, missing: number): Moved {
  const { observedAt, staleAfterSeconds } = inventory;
  // A failed look makes nobody's word older.
  const at = "observation" in sight ? latest(observedAt, sight.at) : (observedAt ?? sight.at);
  const before = componentsInView(known, { at: observedAt ?? at, staleAfterSeconds });
  const after = componentsInView(world, { at, staleAfterSeconds });
  const failure = observationFailure(world);
  const resources = world.specifications.reduce((sum, { resourceCount }) => sum + resourceCount, 0);
  const judgement = healthOf({ failure, resources, missing, components: after });
  return { ...judgement, moves: compare(factsOf(known, before, inventory), factsOf(world, after, judgement)) };
}

/** The later of what was known and what is seen now. */
export function latest(known: Date | null, at: Date): Date {
  return known && known > at ? known : at;
}

async function missingResources({ tx }: ServiceUnit, { id }: Inventory, { known, sight }: Looked): Promise<number> {
  const specifications = "observation" in sight ? (sight.observation.specifications ?? []) : [];
  if (known.unresolved === 0 && specifications.every(({ drift }) => drift.length === 0)) return 0;
  const state = { in: ["OPEN" as const, "PROPOSED" as const] };
  return tx.finding.count({ where: { environmentId: id, kind: "RESOURCE_MISSING", state, vanishedAt: null } });
}
