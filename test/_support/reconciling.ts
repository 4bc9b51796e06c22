import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  DecideReconciliationRequest_Decision as Decision,
  type Proposal,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import type { DriftSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import {
  DriftKind,
  type FindingGrouping,
  ReconciliationDirection,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { applied } from "./provisioning-server.ts";
import type { EnvironmentClient, EnvironmentService } from "./runtime-environment.ts";

type Drift = MessageInitShape<typeof DriftSchema>;

export const REVERT = ReconciliationDirection.REVERT_TO_SPECIFICATION;
export const ADOPT = ReconciliationDirection.ADOPT_OBSERVED;
export const REFRESH = ReconciliationDirection.REFRESH_STATE;

/** A tenant's environment whose drift is reconciled. */
export interface Reconciling {
  tenantId: string;
  tenant: EnvironmentClient;
  environmentId: string;
  specificationId: string;
  /** Has the engine see these facts. */
  seen(facts: readonly Drift[]): Promise<void>;
  proposed(direction?: ReconciliationDirection): Promise<Proposal>;
  decide(proposal: Proposal, decision?: Decision, reason?: string): Promise<Proposal | undefined>;
  proposalNow(proposal: Proposal): Promise<Proposal | undefined>;
  findings(): Promise<Awaited<ReturnType<EnvironmentClient["listFindings"]>>["findings"]>;
  /** ReconciliationDecided, so far. */
  decidedEvents(): Promise<{ event: string; data: Record<string, unknown> }[]>;
  /** Has the next question about an accepted proposal, or about its preview, asked now. */
  followedUp(proposal: Proposal): Promise<string[]>;
  previewed(proposal: Proposal): Promise<Proposal | undefined>;
  /** Proposals are made by themselves once nothing has changed for so long. */
  proposesAfter(
    seconds: bigint,
    more?: { direction?: ReconciliationDirection; grouping?: FindingGrouping },
  ): Promise<void>;
}

export const past = () => new Date(Date.now() - 1_000);

/** One attribute of a resource that was edited. */
export function drift(attribute: string, observed = "edited", address = "terraform_data.app"): Drift {
  const values = { applied: text("declared"), observed: text(observed) };
  return { address, kind: DriftKind.ATTRIBUTE_CHANGED, attribute, ...values };
}

function text(value: string) {
  return create(ValueSchema, { kind: { case: "stringValue", value } });
}

/** Sets what the service in the place of IaCProvisioningService does back to where it starts. */
export function asAtFirst({ provisioning }: EnvironmentService): void {
  provisioning.planned.length = 0;
  provisioning.adopted.length = 0;
  provisioning.plans.clear();
  provisioning.refusal = undefined;
  provisioning.firstState = RunState.QUEUED;
  provisioning.adoption = { parameters: {}, refusals: [] };
  provisioning.parameters = {};
  provisioning.whilePlanning = () => Promise.resolve();
}

export async function reconciling(service: EnvironmentService): Promise<Reconciling> {
  asAtFirst(service);
  const tenantId = `tenant-${uuidv7()}`;
  const tenant = service.as(tenantId);
  const environmentId = await service.created(tenantId);
  const specificationId = uuidv7();
  const due = ({ proposalId: id }: Proposal) =>
    service.database.proposal.update({ where: { id }, data: { askAt: past() } });
  const proposalNow = async ({ proposalId }: Proposal) => (await tenant.getProposal({ proposalId })).proposal;
  return {
    tenantId,
    tenant,
    environmentId,
    specificationId,
    proposalNow,
    async seen(facts) {
      service.provisioning.applied.set(environmentId, [applied({ specificationId, drift: [...facts] })]);
      await tenant.observeEnvironment({ environmentId });
    },
    async proposed(direction = REVERT) {
      const { proposal } = await tenant.proposeReconciliation({ environmentId, direction });
      if (!proposal) throw new Error("no proposal");
      return proposal;
    },
    decide: async ({ proposalId, digest }, decision = Decision.ACCEPT, reason = "") =>
      (await tenant.decideReconciliation({ proposalId, digest, decision, reason })).proposal,
    findings: async () => (await tenant.listFindings({ environmentId })).findings,
    decidedEvents: async () =>
      (await service.announced(tenantId)).filter(({ event }) => event === "ReconciliationDecided"),
    async followedUp(proposal) {
      await due(proposal);
      return service.runOut("acceptance");
    },
    async previewed(proposal) {
      await due(proposal);
      await service.runOut("preview");
      return proposalNow(proposal);
    },
    async proposesAfter(seconds, { direction, grouping } = {}) {
      await tenant.configureEnvironment({
        environmentId,
        observeEvery: { seconds: 60n },
        staleAfter: { seconds: 300n },
        proposeAfter: { seconds },
        ...(direction !== undefined && { proposeDirection: direction }),
        ...(grouping !== undefined && { grouping }),
      });
    },
  };
}
