import { Code, ConnectError } from "@connectrpc/connect";
import { ProvisioningKind, RunMode } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { callFor } from "@runtime-cloud/eventing/peer";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import type { Proposal } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { nextAsk } from "./next-ask.ts";
import type { Look } from "../observers/observer.ts";
import { declareAdoption } from "./proposal-adoption.ts";
import { advanceProposal, lockProposal } from "./proposal-transitions.ts";

/** An adoption is planned to see whether it holds; a caller who waits has less time, and the deadline goes on. */
const ADOPTION_TIMEOUT_MS = 60_000;

/** Has the run of a proposal that is ACCEPTING planned, step by step: each is done once. Throws ConnectError. */
export async function planAccepted(context: Context, proposal: Proposal, look: Look): Promise<Proposal> {
  const ready = proposal.direction === "ADOPT_OBSERVED" ? await adopt(context, proposal, look) : proposal;
  return ready.state === "ACCEPTING" ? planRun(context, ready, look) : ready;
}

async function adopt(context: Context, proposal: Proposal, look: Look): Promise<Proposal> {
  const { id, tenantId } = proposal;
  if (proposal.adoptedId !== null) return proposal;
  const patient = look.signal ? look : { ...look, timeoutMs: ADOPTION_TIMEOUT_MS };
  const adoptedId = await declareAdoption(context, proposal, patient);
  return unitOfWork(context, look.cause, async (unit) => {
    const accepting = await lockProposal(unit.tx, { id, tenantId });
    if (accepting.state !== "ACCEPTING" || accepting.adoptedId !== null) return accepting;
    return advanceProposal(unit, accepting, { type: "adopt", adoptedId });
  });
}

async function planRun(context: Context, { id, tenantId, ...proposal }: Proposal, look: Look): Promise<Proposal> {
  const { direction, adoptedId, specificationId: appliedId } = proposal;
  const specificationId = adoptedId ?? appliedId;
  const mode = direction === "REFRESH_STATE" ? RunMode.REFRESH_ONLY : RunMode.APPLY;
  const request = { specificationId, kind: ProvisioningKind.RECONCILIATION, mode, proposalId: id, idempotencyKey: id };
  const { run } = await context.provisioning.rpc.planProvisioning(request, callFor(tenantId, look.cause, look));
  if (!run) throw new ConnectError("PlanProvisioning answered without a run", Code.Internal);
  return unitOfWork(context, look.cause, async (unit) => {
    const accepting = await lockProposal(unit.tx, { id, tenantId });
    if (accepting.state !== "ACCEPTING") return accepting;
    const askAt = nextAsk(await transactionNow(unit.tx), accepting.asks);
    unit.after(() => context.arm("acceptance", askAt, { proposalId: id }));
    return advanceProposal(unit, accepting, { type: "planRun", provisioningRunId: run.provisioningRunId }, { askAt });
  });
}
