import { InventoryState, SyncStatus } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { RunState, SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import { ApprovalDecidedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/run_control_pb";
import { ApprovalState } from "@runtime-cloud/contracts/runtimecloud/types/v1/run_control_pb";
import { eventually } from "./eventually.ts";
import { expect } from "./narrator.ts";
import { onlyRun, runIn } from "./runs.ts";
import type { Stage } from "./stage.ts";

/** A new environment gets its baseline planned and applied, and its inventory observed. */
export async function stagingGetsItsBaseline(stage: Stage): Promise<string> {
  const { narrator, tenantId } = stage;
  narrator.chapter("1. A STAGING environment is created");
  const environmentId = await announceEnvironment(stage, EnvironmentClass.STAGING);

  await narrator.step(`its baseline ${stage.programs.baseline} is declared as version 1`, async () => {
    const specification = await eventually("a BASELINE specification", async () => {
      const { specifications } = await stage.provisioning.listSpecifications({ environmentId });
      return specifications[0];
    });
    expect(specification.kind === SpecificationKind.BASELINE, "the first specification is not the BASELINE");
    expect(specification.version === 1, `it is version ${specification.version}`);
  });
  await narrator.step(`the run is planned and applied by ${stage.programs.engine}`, async () => {
    const { provisioningRunId } = await onlyRun(stage, environmentId);
    const run = await runIn(stage, provisioningRunId, RunState.APPLIED);
    expect((run.planSummary?.adds ?? 0) > 0, "the plan added nothing");
    const { entries } = await stage.provisioning.getReceipt({ provisioningRunId });
    expect(entries.length === run.planSummary?.adds, `the receipt has ${entries.length} entries`);
  });
  await narrator.step("ProvisioningApplied is announced to its subscribers", () =>
    eventually(
      "ProvisioningApplied",
      () => stage.audience.heard("ProvisioningApplied", (event) => event.tenantid === tenantId)[0],
    ),
  );
  await inventoryIsFreshAndInSync(stage, environmentId);
  return environmentId;
}

/** In production the baseline waits for its approval. */
export async function productionWaitsForApproval(stage: Stage): Promise<string> {
  const { narrator, controlPlane, tenantId } = stage;
  narrator.chapter("2. A PRODUCTION environment is created");
  const environmentId = await announceEnvironment(stage, EnvironmentClass.PRODUCTION);

  const run = await narrator.step("the baseline is planned and waits: AWAITING_APPROVAL", async () => {
    const { provisioningRunId } = await onlyRun(stage, environmentId);
    const waiting = await runIn(stage, provisioningRunId, RunState.AWAITING_APPROVAL);
    const { changes, planDigest } = await stage.provisioning.getPlan({ provisioningRunId });
    expect(changes.length > 0 && planDigest === waiting.planDigest, "the plan can't be reviewed");
    return waiting;
  });
  await narrator.step("ApprovalDecided (approved) sets it going, and it is applied", async () => {
    const approvalId = stage.newId();
    await controlPlane.announce(
      ApprovalDecidedSchema,
      { id: approvalId, tenantId },
      { approvalId, runId: run.provisioningRunId, tenantId, state: ApprovalState.APPROVED, decidedBy: "approver" },
    );
    const applied = await runIn(stage, run.provisioningRunId, RunState.APPLIED);
    expect(applied.approvalId === approvalId, "the run doesn't name its approval");
  });
  await inventoryIsFreshAndInSync(stage, environmentId);
  return environmentId;
}

export async function inventoryIsFreshAndInSync(stage: Stage, environmentId: string): Promise<void> {
  await stage.narrator.step("the environment is observed: FRESH and IN_SYNC", async () => {
    await eventually("FRESH and IN_SYNC", async () => {
      const { environment } = await stage.environments.getEnvironment({ environmentId });
      const state = environment && `${InventoryState[environment.state]} ${SyncStatus[environment.sync]}`;
      if (state !== "FRESH IN_SYNC")
        throw new Error(`it is ${state} (${environment?.observationFailure ?? "no failure"})`);
      return environment;
    });
  });
}

async function announceEnvironment(stage: Stage, environmentClass: EnvironmentClass): Promise<string> {
  const { tenantId, projectId } = stage;
  const environmentId = stage.newId();
  await stage.narrator.step(`EnvironmentCreated (${EnvironmentClass[environmentClass]}) is on the inboxes`, () =>
    stage.controlPlane.announce(
      EnvironmentCreatedSchema,
      { id: environmentId, tenantId, projectId },
      { environmentId, projectId, tenantId, class: environmentClass },
    ),
  );
  return environmentId;
}
