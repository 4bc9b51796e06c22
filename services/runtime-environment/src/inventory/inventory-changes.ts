import type { Inventory } from "../../generated/prisma/client.ts";
import { fitting, type Move } from "./compare.ts";
import type { ServiceUnit } from "../context.ts";

/** Most facts of one change, and of their JSON. */
const RECORDED = { count: 500, bytes: 64 * 1_024 };
/** The path of the last fact where there were more: how many aren't listed. */
const MORE = "/more";

/**
 * Records what moved as the environment's next revision, where no transition does. The environment must be locked.
 * Answers the row with its new revision; nothing moved is no change.
 */
export async function recordChange(
  unit: ServiceUnit,
  inventory: Inventory,
  { moves, actor = unit.cause.actor }: { moves: readonly Move[]; actor?: string },
): Promise<Inventory> {
  if (moves.length === 0) return inventory;
  const { id } = inventory;
  const { revision } = await unit.tx.inventory.update({
    where: { id },
    data: { revision: { increment: 1 } },
    select: { revision: true },
  });
  await recordFacts(unit, { id, revision }, { moves, actor });
  return { ...inventory, revision };
}

/** Writes the change that brought an environment to its revision. */
export async function recordFacts(
  { tx }: ServiceUnit,
  { id, revision }: Pick<Inventory, "id" | "revision">,
  { moves, actor }: { moves: readonly Move[]; actor: string },
): Promise<void> {
  await tx.$executeRaw`
    INSERT INTO inventory_change (inventory_id, revision, at, actor, facts)
    VALUES (${id}, ${revision}, clock_timestamp(), ${actor}, ${JSON.stringify(factsOf(moves))}::jsonb)`;
}

/** As many as one change holds. */
function factsOf(moves: readonly Move[]): Move[] {
  const facts = fitting(moves, RECORDED);
  const more = moves.length - facts.length;
  return more > 0 ? [...facts, { path: MORE, from: null, to: more }] : facts;
}
