import { secondsAfter, transactionNow } from "@runtime-cloud/eventing/database-clock";
import type { DeadlineResult } from "@runtime-cloud/eventing/deadlines";
import type { Finding, Inventory } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { DUE_BATCH, endEach } from "../due.ts";
import { markVanished } from "./finding-rows.ts";
import { advanceFindings, MAX_AT_ONCE } from "./finding-transitions.ts";
import { lockEnvironment } from "../inventory/inventory.ts";
import { settleProposal } from "../proposals/settle-proposal.ts";
import type { World } from "../inventory/world.ts";

/**
 * Resolves findings that a look didn't see, although it would have. While the environment has a delay, a drift may be
 * flapping: then it is noted that it stays away, and it is over once it has for the delay, or if a run has been applied
 * since it was last seen.
 */
export async function settleUnseen(
  unit: ServiceUnit,
  inventory: Inventory,
  { unseen, world, at, now }: Unseen,
): Promise<void> {
  if (unseen.length === 0) return;
  const delay = inventory.proposeAfterSeconds ?? 0;
  const applied = delay > 0 ? await appliedSince(unit, inventory.id, world) : () => true;
  const isOver = (finding: Finding) =>
    applied(finding) || (finding.vanishedAt !== null && secondsAfter(finding.vanishedAt, delay) <= now);
  const over = unseen.filter(isOver);
  const away = unseen.filter((finding) => !isOver(finding) && finding.vanishedAt === null);
  await advanceFindings(unit, over, { type: "resolve", at });
  await markVanished(
    unit.tx,
    away.map(({ id }) => id),
    now,
  );
}

/** Resolves what has stayed away for its environment's delay, whether or not anybody looks again. */
export async function resolveVanished(context: Context): Promise<DeadlineResult> {
  const due = await context.client.$queryRaw<{ id: string; tenantId: string }[]>`
    SELECT DISTINCT inventory.id, inventory.tenant_id AS "tenantId"
    FROM finding JOIN inventory ON inventory.id = finding.environment_id
    WHERE vanished_at IS NOT NULL
      AND vanished_at <= statement_timestamp() - make_interval(secs => coalesce(propose_after_seconds, 0))
    ORDER BY inventory.id LIMIT ${DUE_BATCH}`;
  return endEach(context, "vanished-drift", due, async (unit, place) => {
    const { id: environmentId, proposeAfterSeconds } = await lockEnvironment(unit.tx, place);
    const now = await transactionNow(unit.tx);
    const away = await unit.tx.finding.findMany({
      where: { environmentId, vanishedAt: { lte: secondsAfter(now, -(proposeAfterSeconds ?? 0)) } },
      orderBy: { id: "asc" },
      take: MAX_AT_ONCE,
    });
    await advanceFindings(unit, away, { type: "resolve", at: now });
    if (away.length > 0) await settleProposal(unit, environmentId, { opened: [], moved: [] });
    return away.length > 0;
  });
}

/** Whether a run has been applied since a finding was last seen: another version is, or a proposal was completed. */
async function appliedSince(
  { tx }: ServiceUnit,
  environmentId: string,
  { specifications }: World,
): Promise<(finding: Finding) => boolean> {
  const completed = await tx.proposal.aggregate({
    _max: { endedAt: true },
    where: { environmentId, state: "COMPLETED" },
  });
  const { endedAt } = completed._max;
  const applied = new Map(specifications.map(({ kind, appliedSpecificationId }) => [kind, appliedSpecificationId]));
  return ({ specificationKind, specificationId, lastSeenAt }) =>
    applied.get(specificationKind) !== specificationId || (endedAt !== null && endedAt >= lastSeenAt);
}

interface Unseen {
  unseen: readonly Finding[];
  world: World;
  /** When the look began. */
  at: Date;
  now: Date;
}
