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
import { ProposalState } from "../../generated/prisma/client.ts";
import { followUp } from "./accepted-proposal.ts";
import type { Context } from "../context.ts";
import { decideProposal } from "./decide-proposal.ts";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { listedProposal, proposalMessage } from "./proposal-message.ts";
import { unknownProposal } from "./proposal-transitions.ts";
import { adoptionFor, requestProposal } from "./request-proposal.ts";

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
      const place = { id: request.environmentId, tenantId };
      const cause = callCause(call, newId);
      const adopting = adoptionFor(context, place, request, { cause, signal: call.signal, timeoutMs: timeToAsk(call) });
      // No transaction waits for another service; and a repeat of what was done gets its answer, whatever is said now.
      await Promise.allSettled([adopting]);
      return unitOfWork(context, cause, (unit) =>
        once(unit, { tenantId, method: method.proposeReconciliation, request }, async () => {
          const proposal = await requestProposal(unit, context, place, { request, adoption: await adopting });
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
      await followUp(context, id, { cause, signal: call.signal, timeoutMs: timeToAsk(call) / MAX_CALLS });
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
        proposals: page.map(listedProposal),
        nextPageToken: found.length > size ? pageToken(page.at(-1)?.id ?? "", filter) : "",
      };
    },
  };
}

/** What of the call's time stays for the reply. */
const REPLY_MS = 1_000;
/** How often another service is called for a decision: to adopt, to plan, and to see how it goes. */
const MAX_CALLS = 3;

function timeToAsk(call: HandlerContext): number {
  return Math.max(REPLY_MS, (call.timeoutMs() ?? DEFAULT_DEADLINE_MS) - REPLY_MS);
}
