import type { CreateSuppressionRuleRequest } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/findings_pb";
import { DriftKind as DriftKindCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { type FieldViolation, IllegalTransition, InvalidInput, NotFound } from "@runtime-cloud/service-kit/errors";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { DriftKind, type Inventory, type SuppressionRule } from "../../generated/prisma/client.ts";
import type { ServiceUnit, Tx } from "../context.ts";
import { lockEnvironment } from "../inventory/inventory.ts";
import type { Place } from "../observers/observer.ts";
import { suppressMatching } from "./suppression-holding.ts";
import { coversAll, type RuleScope } from "./suppression-match.ts";
import { reasonViolations } from "./suppression-reason.ts";
import { suppressionEnd } from "./suppression-until.ts";

/** How many rules hold at once for one environment: each look goes through all of them. */
const MAX_RULES = 100;

/**
 * Adds a rule to an environment, which must be locked. The OPEN findings that it silences are SUPPRESSED, as many as one
 * transaction takes; the next look takes the others. What a proposal covers is left to whoever decides it. Throws
 * InvalidInput.
 */
export async function addRule(unit: ServiceUnit, inventory: Inventory, asked: Asked): Promise<SuppressionRule> {
  const { tenantId, id: environmentId } = inventory;
  const { request, createdBy, now } = asked;
  const scope = scopeOf(request);
  const until = suppressionEnd(request.until, now);
  await refuseTooMany(unit.tx, environmentId);
  const { reason } = request;
  const row = { ...scope, tenantId, environmentId, reason, until, createdBy, createdAt: now };
  const rule = await unit.tx.suppressionRule.create({ data: { ...row, id: unit.newId() } });
  const open = await unit.tx.finding.findMany({ where: { environmentId, state: "OPEN" }, orderBy: { id: "asc" } });
  await suppressMatching(unit, open, [rule]);
  return rule;
}

/** Locks a rule's environment, and so the rule. Throws IllegalTransition for one that has ended. */
export async function lockRule(tx: Tx, { id, tenantId }: Place): Promise<SuppressionRule> {
  const found = await tx.suppressionRule.findFirst({ where: { id, tenantId }, select: { environmentId: true } });
  if (!found) throw new NotFound(`suppression rule ${id} does not exist`);
  await lockEnvironment(tx, { id: found.environmentId, tenantId });
  const rule = await tx.suppressionRule.findUniqueOrThrow({ where: { id } });
  if (!rule.endedAt) return rule;
  const reason = "not-in-this-state";
  throw new IllegalTransition({ aggregate: "SuppressionRule", id, state: "ENDED", event: "end", reason, allowed: [] });
}

function scopeOf(request: CreateSuppressionRuleRequest): RuleScope {
  const { resourcePattern, attributePattern } = request;
  const kinds = request.kinds.map((code) => enumNamed(DriftKind, DriftKindCode[code]));
  const violations = kinds.flatMap((kind, index) => (kind ? [] : [unspecified(index)]));
  const scope = { kinds: kinds.filter((kind) => kind !== undefined), resourcePattern, attributePattern };
  if (violations.length === 0 && coversAll(scope)) violations.push(all);
  violations.push(...reasonViolations(request.reason));
  if (violations.length > 0) throw new InvalidInput(violations);
  return scope;
}

function unspecified(index: number): FieldViolation {
  return { field: `kinds[${index}]`, description: "names no kind of drift: leave kinds empty for every kind" };
}

const all: FieldViolation = {
  field: "resourcePattern",
  description:
    "would silence all drift of the environment: name kinds, or give resourcePattern or attributePattern more than `*`; RetireEnvironment ends observation altogether",
};

async function refuseTooMany(tx: Tx, environmentId: string): Promise<void> {
  const holding = await tx.suppressionRule.count({ where: { environmentId, endedAt: null } });
  if (holding < MAX_RULES) return;
  const description = `has ${MAX_RULES} suppression rules, which is the most: end one by EndSuppressionRule`;
  throw new InvalidInput([{ field: "environmentId", description }]);
}

interface Asked {
  request: CreateSuppressionRuleRequest;
  createdBy: string;
  now: Date;
}
