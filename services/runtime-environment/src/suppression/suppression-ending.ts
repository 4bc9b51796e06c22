import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import type { DeadlineResult } from "@runtime-cloud/eventing/deadlines";
import type { FindingEvent } from "@runtime-cloud/state-machines/drift-finding";
import type { Finding, SuppressionRule } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { DUE_BATCH, endEach } from "../due.ts";
import { advanceEach, advanceFinding, MAX_AT_ONCE } from "../findings/finding-transitions.ts";
import { lockEnvironment } from "../inventory/inventory.ts";
import { rulesHolding } from "./suppression-holding.ts";
import { ruleFor, silencedBy } from "./suppression-match.ts";

/**
 * Ends a rule at `now`: what it silenced is OPEN, unless another rule silences it. It silences nothing new from now on;
 * when it has silenced more than one transaction opens, the deadline goes on, and the rule has ended once all of that is
 * open. The environment must be locked.
 */
export async function endRule(unit: ServiceUnit, rule: SuppressionRule, now: Date): Promise<SuppressionRule> {
  const { id, environmentId } = rule;
  const silenced = await unit.tx.finding.findMany({
    where: { suppressionRuleId: id, state: "SUPPRESSED" },
    orderBy: { id: "asc" },
    take: MAX_AT_ONCE,
  });
  const others = (await rulesHolding(unit, environmentId, now)).filter((other) => other.id !== id);
  const moves = silenced.map((finding) => ({ finding, event: afterwards(finding, others, now) }));
  await advanceEach(unit, moves);
  const isAll = silenced.length < MAX_AT_ONCE;
  const until = rule.until < now ? rule.until : now;
  return unit.tx.suppressionRule.update({ where: { id }, data: isAll ? { endedAt: now } : { until } });
}

/** What a finding does that a rule silences no longer. One that nobody sees any more isn't opened for that. */
function afterwards(finding: Finding, others: readonly SuppressionRule[], at: Date): FindingEvent {
  if (finding.vanishedAt) return { type: "resolve", at };
  const other = ruleFor(others, finding);
  return other ? silencedBy(other) : { type: "unsuppress" };
}

/** Ends the rules whose time is over. */
export async function endDueRules(context: Context): Promise<DeadlineResult> {
  const due = await context.client.$queryRaw<DueRow[]>`
    SELECT id::text AS id, tenant_id AS "tenantId", environment_id AS "environmentId" FROM suppression_rule
    WHERE ended_at IS NULL AND until <= statement_timestamp() ORDER BY until LIMIT ${DUE_BATCH}`;
  let isUnfinished = false;
  const result = await endEach(context, "suppression-rule-end", due, async (unit, { id, tenantId, environmentId }) => {
    await lockEnvironment(unit.tx, { id: environmentId, tenantId });
    const rule = await unit.tx.suppressionRule.findUniqueOrThrow({ where: { id } });
    const now = await transactionNow(unit.tx);
    if (rule.endedAt || rule.until > now) return false;
    const { endedAt } = await endRule(unit, rule, now);
    if (!endedAt) isUnfinished = true;
    return true;
  });
  return { ...result, more: isUnfinished || (result.more ?? false) };
}

/** Opens the findings that somebody suppressed by hand, until an instant that has come. */
export async function endDueSuppressions(context: Context): Promise<DeadlineResult> {
  const due = await context.client.$queryRaw<DueRow[]>`
    SELECT id::text AS id, tenant_id AS "tenantId", environment_id AS "environmentId" FROM finding
    WHERE state = 'SUPPRESSED' AND suppression_rule_id IS NULL AND suppressed_until <= statement_timestamp()
    ORDER BY suppressed_until LIMIT ${DUE_BATCH}`;
  return endEach(context, "suppression-end", due, async (unit, { id, tenantId, environmentId }) => {
    await lockEnvironment(unit.tx, { id: environmentId, tenantId });
    const finding = await unit.tx.finding.findUniqueOrThrow({ where: { id } });
    const at = await transactionNow(unit.tx);
    const { state, suppressionRuleId, suppressedUntil } = finding;
    if (state !== "SUPPRESSED" || suppressionRuleId !== null) return false;
    if (!suppressedUntil || suppressedUntil > at) return false;
    await advanceFinding(unit, finding, { type: finding.vanishedAt ? "resolve" : "expire", at });
    return true;
  });
}

interface DueRow {
  id: string;
  tenantId: string;
  environmentId: string;
}
