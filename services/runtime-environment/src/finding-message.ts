import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Finding, FindingSchema } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/findings_pb";
import { DriftKind, FindingState } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import type { Finding as Row } from "../generated/prisma/client.ts";
import { valueMessage } from "./json-column.ts";

export function findingMessage(row: Row): Finding {
  const { proposalId, suppressedReason, suppressedUntil, resolvedAt } = row;
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
    ...(proposalId !== null && { proposalId }),
    ...(suppressedReason !== null && { suppressedReason }),
    ...(suppressedUntil && { suppressedUntil: timestampFromDate(suppressedUntil) }),
    ...(resolvedAt && { resolvedAt: timestampFromDate(resolvedAt) }),
  });
}
