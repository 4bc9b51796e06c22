import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  DecideReconciliationRequest_Decision as Decision,
  ProposalPreview_State as PreviewState,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import {
  DriftKind,
  FindingState,
  ProposalState,
  ReconciliationDirection,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { RunMode, RunState, SpecificationState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { deploy, type TestDeployment } from "../_support/deployment.ts";
import { driftingEnvironment, publishWeb, QUICK_BASELINE } from "../_support/drifting-environments.ts";
import { editState } from "../_support/edit-state.ts";
import {
  announced,
  completed,
  expectInSync,
  reconciliationsOf,
  releasesOf,
  scaledByHand,
  writing,
} from "../_support/reconciled-environments.ts";
import { LISTED, publishTerraformPrograms, QUEUE } from "../_support/terraform-programs.ts";

const START_MS = 60_000;
const TEST_MS = 180_000;
const ADOPT = ReconciliationDirection.ADOPT_OBSERVED;
const REFRESH = ReconciliationDirection.REFRESH_STATE;

const ONCE = {
  RuntimeDriftDetected: 1,
  ReconciliationProposed: 1,
  ReconciliationDecided: 1,
  SpecificationDeclared: 1,
  ProvisioningApplied: 1,
};

let deployment: TestDeployment;
let folder: string;

beforeAll(async () => {
  const services = ["iac-provisioning", "runtime-environment"] as const;
  deployment = await deploy(services, undefined, { baselineProgram: QUICK_BASELINE });
  await publishWeb(deployment.stage);
  await publishTerraformPrograms(deployment.stage);
  // Engines may run under another account, which reads what is in it.
  folder = await mkdtemp(join(tmpdir(), "listed-"));
  await chmod(folder, 0o755);
}, START_MS);
afterAll(async () => {
  await deployment.close();
  await rm(folder, { recursive: true, force: true });
}, START_MS);

test(
  "what somebody changed by hand is adopted: a version that says it is in force, and nothing was touched",
  async () => {
    const environment = await scaledByHand(deployment.stage);
    const proposal = await environment.propose(ADOPT);
    expect(proposal).toMatchObject({ state: ProposalState.PROPOSED, direction: ADOPT, destructive: false });
    expect(proposal.preview).toMatchObject({
      state: PreviewState.READY,
      changes: [{ address: "parameters.replicas", before: { value: 3 }, after: { value: 5 } }],
    });
    const { proposalId } = proposal;
    const another = { proposalId, digest: `sha256:${"0".repeat(64)}`, decision: Decision.ACCEPT };
    const refused = await deployment.stage.environments.decideReconciliation(another).catch(ConnectError.from);
    expect(refused).toMatchObject({ code: Code.InvalidArgument, rawMessage: expect.stringContaining("digest") });
    expect(await releasesOf(deployment.stage, environment)).toHaveLength(1);

    await environment.accept(proposal);
    const adopted = await completed(environment, proposal, FindingState.RESOLVED);
    expect(await releasesOf(deployment.stage, environment)).toMatchObject([
      {
        specificationId: adopted.adoptedSpecificationId,
        version: 2,
        state: SpecificationState.APPLIED,
        parameters: { replicas: 5 },
      },
      { version: 1, state: SpecificationState.SUPERSEDED, parameters: { replicas: 3 } },
    ]);
    expect(await reconciliationsOf(deployment.stage, environment)).toMatchObject([
      {
        provisioningRunId: adopted.provisioningRunId,
        state: RunState.APPLIED,
        planSummary: { adds: 0, changes: 0, deletes: 0, replaces: 0 },
      },
    ]);
    expect(await writing(environment.file)).toBe(environment.edited);
    await expectInSync(environment, 2);
    expect(await announced(deployment, environment, adopted)).toEqual(ONCE);
  },
  TEST_MS,
);

test(
  "what Terraform finds changed is adopted the same way, by the parameter that its program refers to",
  async () => {
    const environment = await driftingEnvironment(deployment.stage, { programVersion: QUEUE });
    await editState(deployment, environment.environmentId, { from: '"size": 3', to: '"size": 9' });
    await environment.observe();
    expect(await environment.findings()).toMatchObject([
      { state: FindingState.OPEN, resource: "terraform_data.queue", attribute: "input.size" },
    ]);
    const proposal = await environment.propose(ADOPT);
    expect(proposal.preview?.changes).toMatchObject([
      { address: "parameters.size", before: { value: 3 }, after: { value: 9 } },
    ]);
    await environment.accept(proposal);
    const { provisioningRunId } = await completed(environment, proposal, FindingState.RESOLVED);
    expect(await releasesOf(deployment.stage, environment)).toMatchObject([
      { version: 2, state: SpecificationState.APPLIED, parameters: { size: 9 } },
      { version: 1, state: SpecificationState.SUPERSEDED },
    ]);
    expect(await reconciliationsOf(deployment.stage, environment)).toMatchObject([
      { provisioningRunId, state: RunState.APPLIED, planSummary: { adds: 0, changes: 0, deletes: 0, replaces: 0 } },
    ]);
    await expectInSync(environment, 2);
  },
  TEST_MS,
);

test(
  "refreshing closes what differs in the engine's records only, and changes nothing else",
  async () => {
    const list = join(folder, "components.json");
    const deployed = (version: string) => writeFile(list, JSON.stringify([{ name: "web", version, replicas: 2 }]));
    await deployed("1.0.0");
    const environment = await driftingEnvironment(deployment.stage, { programVersion: LISTED, parameters: { list } });
    const { environmentId } = environment;
    const { components: applied, resources } = await environment.observe();
    expect(applied).toMatchObject([{ name: "web", version: "1.0.0" }]);

    await deployed("2.0.0");
    const edited = await writing(list);
    const observedAt = timestampFromDate(systemClock.now());
    const components = [{ name: "web", version: "2.0.0", replicasDesired: 2, replicasReady: 2 }];
    await deployment.stage.environments.observeEnvironment({ environmentId, observation: { observedAt, components } });
    expect(await environment.findings()).toMatchObject([
      { state: FindingState.OPEN, kind: DriftKind.VERSION_MISMATCH, resource: "component/web", observer: "push" },
    ]);

    const proposal = await environment.propose(REFRESH);
    expect(proposal).toMatchObject({ direction: REFRESH, destructive: false });
    await environment.accept(proposal);
    const refreshed = await completed(environment, proposal, FindingState.RESOLVED);
    expect(await reconciliationsOf(deployment.stage, environment)).toMatchObject([
      { provisioningRunId: refreshed.provisioningRunId, mode: RunMode.REFRESH_ONLY, state: RunState.APPLIED },
    ]);
    expect(await releasesOf(deployment.stage, environment)).toMatchObject([
      { version: 1, state: SpecificationState.APPLIED },
    ]);
    expect(await writing(list)).toBe(edited);
    await expectInSync(environment, 1);
    expect((await environment.get()).resources).toEqual(resources);
    expect(await announced(deployment, environment, refreshed)).toEqual({ ...ONCE, SpecificationDeclared: 0 });
  },
  TEST_MS,
);

test(
  "refreshing hides nothing: what is declared otherwise is found again, and can still be put back",
  async () => {
    const environment = await scaledByHand(deployment.stage);
    const refresh = await environment.propose(REFRESH);
    await environment.accept(refresh);
    await completed(environment, refresh, FindingState.OPEN);
    expect(await writing(environment.file)).toBe(environment.edited);
    expect(await releasesOf(deployment.stage, environment)).toMatchObject([
      { version: 1, state: SpecificationState.APPLIED },
    ]);

    const revert = await environment.propose();
    await environment.accept(revert);
    await completed(environment, revert, FindingState.RESOLVED);
    expect(await readFile(environment.file, "utf8")).toContain("replicas: 3\n");
    await expectInSync(environment, 1);
  },
  TEST_MS,
);

test(
  "proposals that are accepted while provisioning is down are carried out once it is back, each once",
  async () => {
    const [adopting, refreshing] = await Promise.all([scaledByHand(deployment.stage), scaledByHand(deployment.stage)]);
    const [adoption, refresh] = await Promise.all([adopting.propose(ADOPT), refreshing.propose(REFRESH)]);
    await deployment.services.kill("iac-provisioning");
    const undone = await Promise.all([adopting.accept(adoption), refreshing.accept(refresh)]);
    expect(undone).toMatchObject([{ state: ProposalState.ACCEPTING }, { state: ProposalState.ACCEPTING }]);
    expect(undone.map((each) => each.provisioningRunId)).toEqual([undefined, undefined]);
    await deployment.services.start("iac-provisioning");

    const adopted = await completed(adopting, adoption, FindingState.RESOLVED);
    const refreshed = await completed(refreshing, refresh, FindingState.OPEN);
    expect(await releasesOf(deployment.stage, adopting)).toMatchObject([
      { specificationId: adopted.adoptedSpecificationId, version: 2, state: SpecificationState.APPLIED },
      { version: 1, state: SpecificationState.SUPERSEDED },
    ]);
    expect(await releasesOf(deployment.stage, refreshing)).toMatchObject([
      { version: 1, state: SpecificationState.APPLIED },
    ]);
    expect(await reconciliationsOf(deployment.stage, adopting)).toMatchObject([
      { provisioningRunId: adopted.provisioningRunId },
    ]);
    expect(await reconciliationsOf(deployment.stage, refreshing)).toMatchObject([
      { provisioningRunId: refreshed.provisioningRunId },
    ]);
    await expectInSync(adopting, 2);
    expect(await writing(adopting.file)).toBe(adopting.edited);
    expect(await writing(refreshing.file)).toBe(refreshing.edited);
    expect(await announced(deployment, adopting, adopted)).toEqual(ONCE);
    // A finding that is OPEN again is announced again.
    const refreshedOnce = { ...ONCE, RuntimeDriftDetected: 2, SpecificationDeclared: 0 };
    expect(await announced(deployment, refreshing, refreshed)).toEqual(refreshedOnce);
  },
  TEST_MS,
);
