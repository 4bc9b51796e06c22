import type { FindingEvent } from "@runtime-cloud/state-machines/drift-finding";
import type { Finding, SuppressionRule } from "../../generated/prisma/client.ts";

/** What a rule covers. */
export type RuleScope = Pick<SuppressionRule, "kinds" | "resourcePattern" | "attributePattern">;

const ANY_TEXT = "*";

/** The first of the rules that silences a drift. */
export function ruleFor(
  rules: readonly SuppressionRule[],
  drift: Pick<Finding, "kind" | "resource" | "attribute">,
): SuppressionRule | undefined {
  return rules.find(
    ({ kinds, resourcePattern, attributePattern }) =>
      (kinds.length === 0 || kinds.includes(drift.kind)) &&
      matchesPattern(resourcePattern, drift.resource) &&
      matchesPattern(attributePattern, drift.attribute),
  );
}

/** What a rule does to a finding. */
export function silencedBy({ id: ruleId, reason, until }: SuppressionRule): FindingEvent & { type: "suppress" } {
  return { type: "suppress", reason, until, ruleId };
}

/** Whether a rule would silence all drift of its environment. */
export function coversAll({ kinds, resourcePattern, attributePattern }: RuleScope): boolean {
  return kinds.length === 0 && matchesAll(resourcePattern) && matchesAll(attributePattern);
}

/**
 * Whether a pattern matches a whole text: `*` stands for any text, and an empty pattern for every text; all else stands
 * for itself. It looks at the text once: each part between two stars is taken where it is found first.
 */
export function matchesPattern(pattern: string, text: string): boolean {
  if (matchesAll(pattern)) return true;
  const [first = "", ...rest] = pattern.split(ANY_TEXT);
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let from = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, from);
    if (found === -1) return false;
    from = found + part.length;
  }
  return from <= end;
}

function matchesAll(pattern: string): boolean {
  return pattern.replaceAll(ANY_TEXT, "") === "";
}
