import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import { DecideReconciliationRequest_Decision as Decision } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { FindingState, ProposalState } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { ProvisioningKind, RunMode } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { deploy, type TestDeployment } from "../_support/deployment.ts";
import {
  type DriftingEnvironment,
  driftingEnvironment,
  publishWeb,
  QUICK_BASELINE,
} from "../_support/drifting-environments.ts";
import { type Replica, revisionsOf, startReplica } from "../_support/environment-replica.ts";

const START_MS = 120_000;
const TEST_MS = 120_000;
/** Of each kind of call, half to each of the two processes. */
const CALLS = 8;

let deployment: TestDeployment;
let replica: Replica;
let decided: DriftingEnvironment;
let configured: DriftingEnvironment;
let orphaned: DriftingEnvironment;

beforeAll(async () => {
  const services = ["iac-provisioning", "runtime-environment"] as const;
  deployment = await deploy(services, undefined, { baselineProgram: QUICK_BASELINE });
  const { stage } = deployment;
  await publishWeb(stage);
  replica = await startReplica(deployment);
  [decided, configured, orphaned] = await Promise.all([
    driftingEnvironment(stage),
    driftingEnvironment(stage),
    driftingEnvironment(stage),
  ]);
}, START_MS);
afterAll(async () => {
  await replica.close();
  await deployment.close();
}, START_MS);

/** The same call by many, at both processes at once. */
function atOnce<T>(call: (environments: Replica["environments"], index: number) => Promise<T>) {
  const processes = [deployment.stage.environments, replica.environments];
  return Promise.allSettled(
    Array.from({ length: CALLS }, (_, index) => call(processes[index % 2] ?? replica.environments, index)),
  );
}

const database = () => deployment.stage.databases["runtime-environment"];
const isWhole = async ({ environmentId, get }: DriftingEnvironment) => {
  const revisions = await revisionsOf(database(), environmentId);
  expect(revisions).toEqual(revisions.map((_, index) => index + 1));
  expect(BigInt(revisions.length)).toBe((await get()).revision);
};

test(
  "a proposal that two processes accept at once, again and again, is accepted once and has one run",
  async () => {
    const { stage } = deployment;
    await decided.setReplicas(1);
    await decided.observe();
    const { proposalId, digest } = await decided.propose();
    const accept = { proposalId, digest, decision: Decision.ACCEPT, reason: "by many" };
    const answers = await atOnce((environments, index) =>
      // Some of them are the same call once more.
      environments.decideReconciliation({ ...accept, idempotencyKey: index < CALLS / 2 ? "decision-1" : "" }),
    );
    const refusals = answers.flatMap((answer) =>
      answer.status === "rejected" ? [ConnectError.from(answer.reason)] : [],
    );
    expect(refusals.length).toBeLessThan(CALLS);
    expect(new Set(refusals.map(({ code }) => code))).toEqual(
      new Set(refusals.length ? [Code.FailedPrecondition] : []),
    );

    const { provisioningRunId } = await decided.proposalIn(proposalId, ProposalState.COMPLETED);
    const { runs } = await stage.provisioning.listProvisioningRuns({ environmentId: decided.environmentId });
    const applies = runs.filter(({ kind, mode }) => kind === ProvisioningKind.RECONCILIATION && mode === RunMode.APPLY);
    expect(applies).toMatchObject([{ provisioningRunId }]);
    await eventually("the finding's end", async () => {
      const [finding] = await decided.findings();
      return finding?.state === FindingState.RESOLVED ? true : undefined;
    });
    const heard = () => stage.audience.heard("ReconciliationDecided", ({ subject }) => subject === proposalId);
    await eventually("the decision to be told", () => (heard().length > 0 ? true : undefined));
    expect(heard()).toHaveLength(1);
    await isWhole(decided);
  },
  TEST_MS,
);

test(
  "configurations and looks of two processes at once leave one configuration whole, and each change numbered once",
  async () => {
    const { environmentId } = configured;
    await configured.setReplicas(1);
    const [configurations, looks] = await Promise.all([
      atOnce((environments, index) =>
        environments.configureEnvironment({
          environmentId,
          observeEvery: { seconds: BigInt(1_000 + index) },
          staleAfter: { seconds: BigInt(2_000 + index) },
          observers: { push: { agents: [`agent-${index}`] } },
        }),
      ),
      atOnce((environments) => environments.observeEnvironment({ environmentId })),
    ]);
    expect([...configurations, ...looks].filter(({ status }) => status === "rejected")).toEqual([]);
    const { observeEvery, staleAfter, configuredObservers } = await configured.get();
    const last = Number(observeEvery?.seconds) - 1_000;
    expect(staleAfter?.seconds).toBe(BigInt(2_000 + last));
    expect(configuredObservers?.push?.agents).toEqual([`agent-${last}`]);
    expect(await configured.findings()).toMatchObject([{ state: FindingState.OPEN }]);
    await isWhole(configured);
    await eventually("the drift to be told", () => (configured.detected() > 0 ? true : undefined));
    expect(configured.detected()).toBe(1);
  },
  TEST_MS,
);

test(
  "a process that is killed amid a look, and queues that are lost with it, cost lateness alone",
  async () => {
    const { environmentId } = orphaned;
    await deployment.stage.environments.configureEnvironment({
      environmentId,
      observeEvery: { seconds: 5n },
      staleAfter: { seconds: 7_200n },
    });
    await orphaned.setReplicas(1);
    const looks = Array.from({ length: CALLS }, () => replica.environments.observeEnvironment({ environmentId }));
    await Promise.all([replica.kill(), deployment.redis.flushall(), Promise.allSettled(looks)]);

    await eventually("the drift to be found", async () => {
      const [finding] = await orphaned.findings();
      return finding?.state === FindingState.OPEN ? true : undefined;
    });
    await eventually("the drift to be told", () => (orphaned.detected() > 0 ? true : undefined));
    await orphaned.setReplicas(3);
    await eventually("its end to be seen", async () => {
      const [finding, ...others] = await orphaned.findings();
      expect(others).toEqual([]);
      return finding?.state === FindingState.RESOLVED ? true : undefined;
    });
    expect(orphaned.detected()).toBe(1);
    await isWhole(orphaned);
  },
  TEST_MS,
);
