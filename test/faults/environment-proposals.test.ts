import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Proposal } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { FindingState, ProposalState, SyncStatus } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { ProvisioningKind, RunMode, RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { runIn } from "@runtime-cloud/runtime-cloud-host/story/runs";
import { deploy, type TestDeployment } from "../_support/deployment.ts";
import {
  approve,
  type DriftingEnvironment,
  driftingEnvironment,
  publishWeb,
  QUICK_BASELINE,
  WEB,
} from "../_support/drifting-environments.ts";
import { unpublished } from "../_support/event-invariants.ts";

const START_MS = 120_000;
const TEST_MS = 120_000;

let deployment: TestDeployment;
/** One environment for each of the faults: they are made, and what is undone by them is proposed, side by side. */
let failing: DriftingEnvironment;
let cancelled: Drifted;
let superseded: Drifted;
let abandoned: Drifted;

beforeAll(async () => {
  const services = ["iac-provisioning", "runtime-environment"] as const;
  deployment = await deploy(services, undefined, { baselineProgram: QUICK_BASELINE });
  const { stage } = deployment;
  await publishWeb(stage);
  [failing, cancelled, superseded, abandoned] = await Promise.all([
    driftingEnvironment(stage),
    drifted(EnvironmentClass.PRODUCTION),
    drifted(EnvironmentClass.PRODUCTION),
    drifted(EnvironmentClass.TEST),
  ]);
}, START_MS);
afterAll(() => deployment.close(), START_MS);

/** A proposal that puts back what somebody has edited. */
interface Drifted {
  environment: DriftingEnvironment;
  proposal: Proposal;
}

async function drifted(of: EnvironmentClass): Promise<Drifted> {
  const environment = await driftingEnvironment(deployment.stage, { class: of });
  await environment.setReplicas(1);
  await environment.observe();
  return { environment, proposal: await environment.propose() };
}

const states = async (environment: DriftingEnvironment) =>
  (await environment.findings()).map(({ state }) => FindingState[state]);

test.concurrent(
  "a run that fails fails its proposal with its reason, and its findings wait for the next proposal",
  async () => {
    const environment = failing;
    // Where the file was is a directory now, which nothing writes over.
    const file = join(environment.directory, "web.yaml");
    await rm(file);
    await mkdir(file);
    await environment.observe();
    const proposal = await environment.propose();
    const { provisioningRunId = "" } = await environment.accept(proposal);
    const failed = await environment.proposalIn(proposal.proposalId, ProposalState.FAILED);
    const { run } = await deployment.stage.provisioning.getProvisioningRun({ provisioningRunId });
    expect(run).toMatchObject({ state: RunState.FAILED, reason: failed.reason });
    expect(failed.reason).toContain("web.yaml");
    expect(await states(environment)).toEqual(["OPEN"]);

    await rm(file, { recursive: true });
    const next = await environment.propose();
    await environment.accept(next);
    await environment.proposalIn(next.proposalId, ProposalState.COMPLETED);
    await eventually("the finding's end", async () =>
      (await states(environment))[0] === "RESOLVED" ? true : undefined,
    );
  },
  TEST_MS,
);

test.concurrent(
  "a run that is cancelled fails its proposal, though no event tells of it",
  async () => {
    const { environment, proposal } = cancelled;
    const { provisioningRunId = "" } = await environment.accept(proposal);
    await runIn(deployment.stage, provisioningRunId, RunState.AWAITING_APPROVAL);
    await deployment.stage.provisioning.cancelProvisioning({ provisioningRunId, reason: "not today" });
    const failed = await environment.proposalIn(proposal.proposalId, ProposalState.FAILED);
    expect(failed.reason).toMatch(/CANCELLED|not today/);
    expect(await states(environment)).toEqual(["OPEN"]);
    expect((await environment.get()).sync).toBe(SyncStatus.DRIFTED);
  },
  TEST_MS,
);

test.concurrent(
  "a run that a newer release supersedes fails its proposal, and what that release has put right is closed",
  async () => {
    const { environment, proposal } = superseded;
    const release = await environment.promote(WEB, { replicas: 5 });
    await runIn(deployment.stage, release.provisioningRunId, RunState.AWAITING_APPROVAL);
    const { provisioningRunId = "" } = await environment.accept(proposal);
    expect(provisioningRunId).not.toBe("");
    await approve(deployment.stage, release.provisioningRunId);
    await runIn(deployment.stage, release.provisioningRunId, RunState.APPLIED);

    const failed = await environment.proposalIn(proposal.proposalId, ProposalState.FAILED);
    expect(failed.reason).toContain("version 2 of the RELEASE specification took its place");
    await eventually("the finding's end", async () => {
      const seen = await environment.get();
      return seen.sync === SyncStatus.IN_SYNC && (await states(environment))[0] === "RESOLVED" ? true : undefined;
    });
  },
  TEST_MS,
);

test(
  "a proposal that is accepted while provisioning is down waits for it, and then has one run",
  async () => {
    const { environment, proposal } = abandoned;
    const { services, stage } = deployment;
    await services.kill("iac-provisioning");
    const accepting = await environment.accept(proposal);
    expect(accepting).toMatchObject({ state: ProposalState.ACCEPTING });
    expect(accepting.provisioningRunId).toBeUndefined();
    // Deciding again, while nobody knows whether the first decision had its run planned, adds none.
    await environment.accept(proposal).catch(() => undefined);
    await services.kill("runtime-environment");
    await Promise.all([services.start("runtime-environment"), services.start("iac-provisioning")]);
    // It is asked for again after a pause, which has doubled meanwhile: the pause is over.
    const database = stage.databases["runtime-environment"];
    await database.query("UPDATE proposal SET ask_at = now() WHERE id = $1", [proposal.proposalId]);

    const completed = await environment.proposalIn(proposal.proposalId, ProposalState.COMPLETED);
    const { runs } = await stage.provisioning.listProvisioningRuns({ environmentId: environment.environmentId });
    const applies = runs.filter(({ kind, mode }) => kind === ProvisioningKind.RECONCILIATION && mode === RunMode.APPLY);
    expect(applies).toMatchObject([{ provisioningRunId: completed.provisioningRunId, state: RunState.APPLIED }]);
    await eventually("the finding's end", async () =>
      (await states(environment))[0] === "RESOLVED" ? true : undefined,
    );
    await eventually("an empty outbox", async () => ((await unpublished(database)).length === 0 ? true : undefined));
    const heard = () =>
      stage.audience.heard("ReconciliationDecided", ({ subject }) => subject === proposal.proposalId).length;
    await eventually("ReconciliationDecided, once", () => (heard() === 1 ? true : undefined));
  },
  TEST_MS,
);
