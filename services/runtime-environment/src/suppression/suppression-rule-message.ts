import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type SuppressionRule,
  SuppressionRuleSchema,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/findings_pb";
import { DriftKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import type { SuppressionRule as Row } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";

/** A rule as callers see it; `suppressed` is how many findings it silences now. */
export function ruleMessage(row: Row, suppressed: number): SuppressionRule {
  const { id: ruleId, environmentId, resourcePattern, attributePattern, reason, createdBy, endedAt } = row;
  return create(SuppressionRuleSchema, {
    ...{ ruleId, environmentId, resourcePattern, attributePattern, reason, createdBy, suppressed },
    kinds: row.kinds.map((kind) => DriftKind[kind]),
    until: timestampFromDate(row.until),
    createdAt: timestampFromDate(row.createdAt),
    ...(endedAt && { endedAt: timestampFromDate(endedAt) }),
  });
}

/** How many findings each of the rules silences; a rule that silences none isn't there. */
export async function suppressedBy(tx: Tx, ruleIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const counted = await tx.finding.groupBy({
    by: ["suppressionRuleId"],
    where: { suppressionRuleId: { in: [...ruleIds] }, state: "SUPPRESSED" },
    _count: true,
  });
  return new Map(counted.map(({ suppressionRuleId, _count }) => [suppressionRuleId ?? "", _count]));
}
