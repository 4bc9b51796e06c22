import type { DeadlineResult } from "@runtime-cloud/eventing/deadlines";
import type { Finding } from "../generated/prisma/client.ts";
import type { Context } from "./context.ts";
import { transactionNow, secondsAfter } from "@runtime-cloud/eventing/database-clock";
import { DUE_BATCH, endEach } from "./due.ts";
import { proposalDigest } from "./fingerprint.ts";
import { lockEnvironment } from "./inventory.ts";
import { propose } from "./propose.ts";

interface DueEnvironment {
  id: string;
  tenantId: string;
}

const KIND = "auto-propose";

/**
 * Makes the proposals that an environment's configuration asks for: of the specification whose finding is open longest,
 * once no other proposal of the environment is under way. What was rejected or has failed isn't proposed again by
 * itself until something about it moves.
 */
export async function proposeDue(context: Context): Promise<DeadlineResult> {
  const due = await context.client.$queryRaw<DueEnvironment[]>`
    SELECT id, tenant_id AS "tenantId" FROM inventory
    WHERE state <> 'RETIRED' AND propose_after_seconds IS NOT NULL
      AND EXISTS (
        SELECT FROM finding WHERE environment_id = inventory.id AND state = 'OPEN'
          AND first_seen_at <= clock_timestamp() - make_interval(secs => propose_after_seconds))
      AND NOT EXISTS (
        SELECT FROM proposal WHERE environment_id = inventory.id AND state IN ('PROPOSED', 'ACCEPTING', 'ACCEPTED'))
    ORDER BY id LIMIT ${DUE_BATCH}`;
  return endEach(context, KIND, due, async (unit, place) => {
    const inventory = await lockEnvironment(unit.tx, place);
    const { id: environmentId, proposeAfterSeconds } = inventory;
    const underWay = await unit.tx.proposal.count({
      where: { environmentId, state: { in: ["PROPOSED", "ACCEPTING", "ACCEPTED"] } },
    });
    if (proposeAfterSeconds === null || underWay > 0) return false;
    const refused = await unit.tx.proposal.findMany({
      where: { environmentId, state: { in: ["REJECTED", "FAILED"] } },
      select: { digest: true },
    });
    const openSince = secondsAfter(await transactionNow(unit.tx), -proposeAfterSeconds);
    const open = await unit.tx.finding.findMany({ where: { environmentId, state: "OPEN" }, orderBy: { id: "asc" } });
    const grouping = ripeGroups(open, openSince)
      .map(({ specificationId, findings }) => ({ direction, specificationId, findings, undecided: null }))
      .find((group) => !refused.some(({ digest }) => digest === proposalDigest(group)));
    if (!grouping) return false;
    await propose(unit, context, inventory, grouping);
    return true;
  });
}

const direction = "REVERT_TO_SPECIFICATION" as const;

/** The findings of each specification that has one open since `openSince`, longest open first. */
function ripeGroups(open: readonly Finding[], openSince: Date) {
  const ids = new Set(
    open.filter(({ firstSeenAt }) => firstSeenAt <= openSince).map((finding) => finding.specificationId),
  );
  return [...ids].map((specificationId) => ({
    specificationId,
    findings: open.filter((finding) => finding.specificationId === specificationId),
  }));
}
