import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  DecideReconciliationResponseSchema,
  ProposeReconciliationResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import { ProposalState as StateCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { callCause } from "@runtime-cloud/eventing/cause";
import { once } from "@runtime-cloud/eventing/idempotency";
import { pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { DEFAULT_DEADLINE_MS } from "@runtime-cloud/service-kit/call-limits";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { ProposalState } from "../generated/prisma/client.ts";
import { followUp } from "./accepted-proposal.ts";
import type { Context } from "./context.ts";
import { decideProposal } from "./decide-proposal.ts";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { groupFindings } from "./group-findings.ts";
import { lockEnvironment, refuseRetired } from "./inventory.ts";
import { proposalMessage } from "./proposal-message.ts";
import { unknownProposal } from "./proposal-transitions.ts";
import { propose } from "./propose.ts";

type Routes = Pick<
  ServiceImpl<typeof RuntimeEnvironmentService>,
  "proposeReconciliation" | "decideReconciliation" | "getProposal" | "listProposals"
>;

const { method } = RuntimeEnvironmentService;

export function proposalRoutes(context: Context): Routes {
  const { client, newId } = context;
  return {
    async proposeReconciliation(request, call) {
      const { tenantId } = principalOf(call);
      return unitOfWork(context, callCause(call, newId), (unit) =>
        once(unit, { tenantId, method: method.proposeReconciliation, request }, async () => {
          const inventory = await lockEnvironment(unit.tx, { id: request.environmentId, tenantId });
          refuseRetired(inventory, "propose");
          const grouping = await groupFindings(unit, inventory, request);
          const proposal = await propose(unit, context, inventory, grouping);
          return create(ProposeReconciliationResponseSchema, { proposal: proposalMessage(proposal) });
        }),
      );
    },

    async decideReconciliation(request, call) {
      const { tenantId, subject: by } = principalOf(call);
      const { proposalId: id, decision, digest } = request;
      const cause = callCause(call, newId);
      const verdict = { id, tenantId, decision, digest, by, reason: request.reason || null };
      await unitOfWork(context, cause, (unit) =>
        once(unit, { tenantId, method: method.decideReconciliation, request }, async () => {
          const decided = await decideProposal(unit, context, verdict);
          return create(DecideReconciliationResponseSchema, { proposal: proposalMessage(decided) });
        }),
      );
      // The decision stands whatever comes of this: what isn't planned now is planned by the deadline.
      await followUp(context, id, { cause, signal: call.signal, timeoutMs: timeToPlan(call) });
      const decided = await client.proposal.findUniqueOrThrow({ where: { id } });
      return { proposal: proposalMessage(decided) };
    },

    async getProposal({ proposalId: id }, call) {
      const proposal = await client.proposal.findFirst({ where: { id, tenantId: principalOf(call).tenantId } });
      if (!proposal) throw unknownProposal(id);
      return { proposal: proposalMessage(proposal) };
    },

    async listProposals(request, call) {
      const { tenantId } = principalOf(call);
      const environmentId = request.environmentId || undefined;
      const state = enumNamed(ProposalState, StateCode[request.state]);
      const filter = { environmentId, state };
      const after = pageAfter(request.pageToken, filter);
      const size = pageSize(request.pageSize);
      const found = await client.proposal.findMany({
        where: {
          tenantId,
          ...(environmentId !== undefined && { environmentId }),
          ...(state && { state }),
          ...(after !== undefined && { id: { lt: after } }),
        },
        orderBy: { id: "desc" },
        take: size + 1,
      });
      const page = found.slice(0, size);
      return {
        proposals: page.map(proposalMessage),
        nextPageToken: found.length > size ? pageToken(page.at(-1)?.id ?? "", filter) : "",
      };
    },
  };
}

/** What of the call's time stays for the reply. Two calls are made at most: to plan, and to see how it goes. */
const REPLY_MS = 1_000;

function timeToPlan(call: HandlerContext): number {
  return Math.max(REPLY_MS, ((call.timeoutMs() ?? DEFAULT_DEADLINE_MS) - REPLY_MS) / 2);
}
