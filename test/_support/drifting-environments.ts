import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import type { Environment } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import type { Finding } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/findings_pb";
import {
  DecideReconciliationRequest_Decision as Decision,
  type Proposal,
  ProposalPreview_State as PreviewState,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import type { ProvisioningRun } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import {
  InventoryState,
  ProposalState,
  ReconciliationDirection,
  SyncStatus,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import {
  ProvisioningKind,
  RunMode,
  RunState,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { editFile } from "@runtime-cloud/runtime-cloud-host/story/edit-file";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { newestRun, runIn } from "@runtime-cloud/runtime-cloud-host/story/runs";
import type { Stage } from "@runtime-cloud/runtime-cloud-host/story/stage";
import { archiveOf } from "./program-archive.ts";

/** A baseline that is quickly made and looked at. */
export const QUICK_BASELINE = "environment-baseline-manifests@1.0.0";
/** A program of one file, `web.yaml`, which says how many replicas there are. */
export const WEB = "web@1.0.0";

const WEB_FILES = {
  "program.yaml": `
engine: manifests
description: One deployment.
parameters:
  replicas: { type: integer, default: 3 }
`,
  "templates/web.yaml":
    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: ${replicas}\n",
};

/** An environment whose release is applied, and what people and services do to it. */
export interface DriftingEnvironment {
  environmentId: string;
  /** Where its release's files are. */
  directory: string;
  /** Edits `web.yaml` by hand. */
  setReplicas(replicas: number): Promise<void>;
  observe(): Promise<Environment>;
  get(): Promise<Environment>;
  /** Newest first. */
  findings(): Promise<Finding[]>;
  proposals(): Promise<Proposal[]>;
  /** Proposes to reconcile all that is open, by a revert unless another direction is named, and waits for its preview. */
  propose(direction?: ReconciliationDirection): Promise<Proposal>;
  /** Accepts it as it was reviewed, and resolves with it as it is then. */
  accept(proposal: Proposal): Promise<Proposal>;
  proposalIn(proposalId: string, state: ProposalState): Promise<Proposal>;
  /** Declares a version of the release and has its run planned; answers the run. */
  promote(programVersion: string, parameters?: JsonObject): Promise<ProvisioningRun>;
  /** The RuntimeDriftDetected that were heard of it. */
  detected(): number;
}

/** However many resources there are, and however busy the machine is. */
const LOOK_MS = 55_000;

export interface EnvironmentWish {
  class?: EnvironmentClass;
  programVersion?: string;
  parameters?: JsonObject;
}

/** Has the tenant's own program. */
export async function publish({ provisioning }: Stage, programVersion: string, files: Record<string, string>) {
  await provisioning.publishProgram({ programVersion, archive: await archiveOf(files) });
}

export async function publishWeb(stage: Stage): Promise<void> {
  await publish(stage, WEB, WEB_FILES);
}

/**
 * A new environment with its baseline and a release applied, observed, and as it should be. From then on it is looked at
 * when something has happened or somebody asks, not by the clock.
 */
export async function driftingEnvironment(stage: Stage, wish: EnvironmentWish = {}): Promise<DriftingEnvironment> {
  const { class: of = EnvironmentClass.TEST, programVersion = WEB, parameters = {} } = wish;
  const environment = environmentOn(stage, await createdEnvironment(stage, of));
  const { environmentId } = environment;
  const baseline = await newestRun(stage, environmentId, ({ kind }) => kind === ProvisioningKind.BASELINE);
  await applied(stage, baseline, of);
  await applied(stage, await environment.promote(programVersion, parameters), of);
  await eventually("the release, seen as it was applied", async () => {
    const seen = await environment.get();
    const release = seen.versions.find(({ kind }) => kind === "RELEASE");
    const isThere = seen.state === InventoryState.FRESH && seen.resources.length > 0 && release?.applied === 1;
    if (!isThere || seen.sync !== SyncStatus.IN_SYNC) throw new Error(`it is ${SyncStatus[seen.sync]}`);
    return true;
  });
  const seldom = { observeEvery: { seconds: 3_600n }, staleAfter: { seconds: 7_200n } };
  await stage.environments.configureEnvironment({ environmentId, ...seldom });
  return environment;
}

async function createdEnvironment({ controlPlane, newId, tenantId, projectId }: Stage, of: EnvironmentClass) {
  const environmentId = newId();
  const fields = { environmentId, tenantId, projectId, class: of };
  await controlPlane.announce(EnvironmentCreatedSchema, { id: environmentId, tenantId, projectId }, fields);
  return environmentId;
}

/** In production somebody has to approve it first. */
async function applied(stage: Stage, { provisioningRunId }: ProvisioningRun, of: EnvironmentClass): Promise<void> {
  if (of === EnvironmentClass.PRODUCTION) await approve(stage, provisioningRunId);
  await runIn(stage, provisioningRunId, RunState.APPLIED);
}

/** Approves a run once its plan waits for it. */
export async function approve(stage: Stage, provisioningRunId: string): Promise<void> {
  const { planDigest = "" } = await runIn(stage, provisioningRunId, RunState.AWAITING_APPROVAL);
  await stage.approver.approveProvisioning({ provisioningRunId, planDigest });
}

function environmentOn(stage: Stage, environmentId: string): DriftingEnvironment {
  const { environments, provisioning, audience, tenantId, targetsDir } = stage;
  const directory = join(targetsDir, tenantId, environmentId, "release");
  const proposal = async (proposalId: string) => {
    const { proposal: found } = await environments.getProposal({ proposalId });
    if (!found) throw new Error(`no proposal ${proposalId}`);
    return found;
  };
  return {
    environmentId,
    directory,
    async setReplicas(replicas) {
      await editFile(join(directory, "web.yaml"), (text) => text.replace(/replicas: \d+/, `replicas: ${replicas}`));
    },
    async observe() {
      const { environment } = await environments.observeEnvironment({ environmentId }, { timeoutMs: LOOK_MS });
      return there(environment);
    },
    get: async () => there((await environments.getEnvironment({ environmentId })).environment),
    findings: async () => (await environments.listFindings({ environmentId })).findings,
    proposals: async () => (await environments.listProposals({ environmentId })).proposals,
    async propose(direction = ReconciliationDirection.REVERT_TO_SPECIFICATION) {
      const { proposal: made } = await environments.proposeReconciliation({ environmentId, direction });
      return eventually("the proposal's preview", async () => {
        const seen = await proposal(made?.proposalId ?? "");
        return seen.preview?.state === PreviewState.PENDING ? undefined : seen;
      });
    },
    async accept({ proposalId, digest }) {
      await environments.decideReconciliation({ proposalId, digest, decision: Decision.ACCEPT, reason: "by hand" });
      return proposal(proposalId);
    },
    proposalIn: (proposalId, state) =>
      eventually(`the proposal ${ProposalState[state]}`, async () => {
        const seen = await proposal(proposalId);
        if (seen.state === state) return seen;
        throw new Error(`it is ${ProposalState[seen.state]} (${seen.reason ?? "no reason"})`);
      }),
    async promote(programVersion, parameters = {}) {
      const { specification } = await provisioning.declareSpecification({
        environmentId,
        kind: SpecificationKind.RELEASE,
        programVersion,
        parameters,
      });
      const { run } = await provisioning.planProvisioning({
        specificationId: specification?.specificationId ?? "",
        kind: ProvisioningKind.PROMOTION,
        mode: RunMode.APPLY,
      });
      return there(run);
    },
    detected: () =>
      audience.heard("RuntimeDriftDetected", ({ data }) => data["environmentId"] === environmentId).length,
  };
}

function there<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the answer is empty");
  return value;
}
