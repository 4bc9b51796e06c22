import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Finding, FindingSchema } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/findings_pb";
import {
  DriftKind,
  DriftOrigin,
  FindingSeverity,
  FindingState,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import type { Finding as Row } from "../../generated/prisma/client.ts";
import { originOf, type Versions } from "./finding-origin.ts";
import { valueMessage } from "../inventory/json-column.ts";

/** A finding as callers see it. `tracked` are the versions of its environment, which tell its origin. */
export function findingMessage(row: Row, tracked: readonly Versions[]): Finding {
  const { proposalId, suppressedReason, suppressedUntil, resolvedAt, vanishedAt } = row;
  const { previousFindingId, suppressionRuleId } = row;
  return create(FindingSchema, {
    findingId: row.id,
    environmentId: row.environmentId,
    state: FindingState[row.state],
    kind: DriftKind[row.kind],
    resource: row.resource,
    attribute: row.attribute,
    declared: valueMessage(row.declared),
    observed: valueMessage(row.observed),
    firstSeenAt: timestampFromDate(row.firstSeenAt),
    lastSeenAt: timestampFromDate(row.lastSeenAt),
    occurrences: row.occurrences,
    severity: FindingSeverity[row.severity],
    origin: DriftOrigin[originOf(row.specificationKind, tracked)],
    observer: row.observer,
    ...(proposalId !== null && { proposalId }),
    ...(suppressedReason !== null && { suppressedReason }),
    ...(suppressedUntil && { suppressedUntil: timestampFromDate(suppressedUntil) }),
    ...(resolvedAt && { resolvedAt: timestampFromDate(resolvedAt) }),
    ...(previousFindingId !== null && { previousFindingId }),
    ...(suppressionRuleId !== null && { suppressionRuleId }),
    ...(vanishedAt && { vanishedAt: timestampFromDate(vanishedAt) }),
  });
}
