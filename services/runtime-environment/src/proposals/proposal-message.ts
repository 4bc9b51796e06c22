import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Proposal, ProposalSchema } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { ProposalState, ReconciliationDirection } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import type { Proposal as Row } from "../../generated/prisma/client.ts";
import { previewMessage } from "./proposal-preview.ts";

export function proposalMessage(row: Row): Proposal {
  const { provisioningRunId, decidedBy, decidedAt, reason, adoptedId, supersededBy } = row;
  return create(ProposalSchema, {
    proposalId: row.id,
    environmentId: row.environmentId,
    state: ProposalState[row.state],
    direction: ReconciliationDirection[row.direction],
    destructive: row.destructive,
    digest: row.digest,
    findingIds: row.findingIds,
    proposedAt: timestampFromDate(row.proposedAt),
    expiresAt: timestampFromDate(row.expiresAt),
    preview: previewMessage(row),
    ...(provisioningRunId !== null && { provisioningRunId }),
    ...(decidedBy !== null && { decidedBy }),
    ...(decidedAt && { decidedAt: timestampFromDate(decidedAt) }),
    ...(reason !== null && { reason }),
    ...(adoptedId !== null && { adoptedSpecificationId: adoptedId }),
    ...(supersededBy !== null && { supersededBy }),
  });
}

/** A proposal in a list, without what its preview's plan would change. */
export function listedProposal(row: Row): Proposal {
  const message = proposalMessage(row);
  if (message.preview) message.preview.changes = [];
  return message;
}
