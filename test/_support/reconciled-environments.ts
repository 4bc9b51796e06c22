import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "@jest/globals";
import type { Proposal } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import {
  DriftKind,
  FindingState,
  ProposalState,
  SyncStatus,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import {
  ProvisioningKind,
  RunMode,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import type { Stage } from "@runtime-cloud/runtime-cloud-host/story/stage";
import type { TestDeployment } from "./deployment.ts";
import { type DriftingEnvironment, driftingEnvironment } from "./drifting-environments.ts";
import { unpublished } from "./event-invariants.ts";

/** An environment in which somebody has scaled the release by hand, from 3 replicas to 5. */
export async function scaledByHand(stage: Stage): Promise<ScaledEnvironment> {
  const environment = await driftingEnvironment(stage);
  await environment.setReplicas(5);
  const file = join(environment.directory, "web.yaml");
  const edited = await writing(file);
  await environment.observe();
  expect(await environment.findings()).toMatchObject([
    {
      state: FindingState.OPEN,
      kind: DriftKind.ATTRIBUTE_CHANGED,
      resource: "web.yaml",
      attribute: "spec.replicas",
      declared: { kind: { value: 3 } },
      observed: { kind: { value: 5 } },
    },
  ]);
  return { ...environment, file, edited };
}

export type ScaledEnvironment = DriftingEnvironment & { file: string; edited: string };

/** Changes with whoever writes the file. */
export async function writing(file: string): Promise<string> {
  const [text, { mtimeMs }] = await Promise.all([readFile(file, "utf8"), stat(file)]);
  return `${mtimeMs} ${text}`;
}

/** Newest first. */
export async function releasesOf({ provisioning }: Stage, { environmentId }: DriftingEnvironment) {
  const kind = SpecificationKind.RELEASE;
  const { specifications } = await provisioning.listSpecifications({ environmentId, kind });
  return specifications;
}

/** Those that changed something, or the records. */
export async function reconciliationsOf({ provisioning }: Stage, { environmentId }: DriftingEnvironment) {
  const { runs } = await provisioning.listProvisioningRuns({ environmentId });
  return runs.filter(({ kind, mode }) => kind === ProvisioningKind.RECONCILIATION && mode !== RunMode.PLAN_ONLY);
}

/** Resolves once the proposal is COMPLETED and the look after its run has the environment's finding in `wanted`. */
export async function completed(environment: DriftingEnvironment, { proposalId }: Proposal, wanted: FindingState) {
  const proposal = await environment.proposalIn(proposalId, ProposalState.COMPLETED);
  await eventually(`the finding ${FindingState[wanted]}`, async () => {
    const states = (await environment.findings()).map(({ state }) => FindingState[state]);
    if (states.join() !== FindingState[wanted]) throw new Error(`it is ${states.join()}`);
    return true;
  });
  return proposal;
}

export async function expectInSync(environment: DriftingEnvironment, version: number): Promise<void> {
  const { sync, versions } = await eventually("the applied version in the inventory", async () => {
    const seen = await environment.observe();
    return seen.versions.some(({ kind, applied }) => kind === "RELEASE" && applied === version) ? seen : undefined;
  });
  expect(sync).toBe(SyncStatus.IN_SYNC);
  expect(versions).toContainEqual(expect.objectContaining({ kind: "RELEASE", declared: version, applied: version }));
  expect(await environment.findings()).toMatchObject([{ state: FindingState.RESOLVED }]);
}

/** How often each event about a proposal was announced, once all that the services had to say was heard. */
export async function announced(
  { stage, inboxIsDone }: TestDeployment,
  { environmentId }: DriftingEnvironment,
  proposal: Proposal,
) {
  await eventually("empty outboxes", async () => {
    const left = await Promise.all(
      [stage.databases["iac-provisioning"], stage.databases["runtime-environment"]].map(unpublished),
    );
    return left.flat().length === 0 ? true : undefined;
  });
  await inboxIsDone("AuditService");
  const times = (name: string, field: string, value: string | undefined) =>
    stage.audience.heard(name, ({ data }) => data[field] === value).length;
  const { proposalId, provisioningRunId, adoptedSpecificationId } = proposal;
  return {
    RuntimeDriftDetected: times("RuntimeDriftDetected", "environmentId", environmentId),
    ReconciliationProposed: times("ReconciliationProposed", "proposalId", proposalId),
    ReconciliationDecided: times("ReconciliationDecided", "proposalId", proposalId),
    SpecificationDeclared: times("SpecificationDeclared", "specificationId", adoptedSpecificationId ?? ""),
    ProvisioningApplied: times("ProvisioningApplied", "provisioningRunId", provisioningRunId),
  };
}
