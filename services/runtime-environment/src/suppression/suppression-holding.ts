import type { Finding, SuppressionRule } from "../../generated/prisma/client.ts";
import type { ServiceUnit } from "../context.ts";
import { advanceEach, MAX_AT_ONCE } from "../findings/finding-transitions.ts";
import { ruleFor, silencedBy } from "./suppression-match.ts";

/** The rules of an environment that hold at `now`, those that hold longest first. */
export async function rulesHolding({ tx }: ServiceUnit, environmentId: string, now: Date): Promise<SuppressionRule[]> {
  return tx.suppressionRule.findMany({
    where: { environmentId, endedAt: null, until: { gt: now } },
    orderBy: [{ until: "desc" }, { id: "asc" }],
  });
}

/** Suppresses those of the OPEN findings that a rule silences, as many as one transaction takes: the next look goes on. */
export async function suppressMatching(
  unit: ServiceUnit,
  findings: readonly Finding[],
  rules: readonly SuppressionRule[],
): Promise<void> {
  const moves = findings.flatMap((finding) => {
    const rule = ruleFor(rules, finding);
    return rule ? [{ finding, event: silencedBy(rule) }] : [];
  });
  await advanceEach(unit, moves.slice(0, MAX_AT_ONCE));
}
