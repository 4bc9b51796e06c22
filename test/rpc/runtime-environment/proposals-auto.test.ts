import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  DecideReconciliationRequest_Decision as Decision,
  ProposalPreview_State as PreviewState,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { FindingGrouping, ProposalState } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { proposeAfter } from "@runtime-cloud/runtime-environment/proposals/proposal-policy";
import { ADOPT, drift, type Reconciling, reconciling, REFRESH } from "../../_support/reconciling.ts";
import { type EnvironmentService, startEnvironments } from "../../_support/runtime-environment.ts";

let service: EnvironmentService;
let here: Reconciling;

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  here = await reconciling(service);
});

/** Which proposals were made by themselves now. */
async function selfMade() {
  const before = await service.database.proposal.count({ where: { environmentId: here.environmentId } });
  await service.runOut("auto-propose");
  const { proposals } = await here.tenant.listProposals({ environmentId: here.environmentId });
  return proposals.slice(0, proposals.length - before);
}

/** As if everything that changed had changed so long ago. */
async function age(seconds: number) {
  await service.database.$executeRaw`
    UPDATE finding SET changed_at = changed_at - make_interval(secs => ${seconds}),
      vanished_at = vanished_at - make_interval(secs => ${seconds})
    WHERE environment_id = ${here.environmentId}`;
}

test("an environment that isn't configured to proposes nothing by itself", async () => {
  await here.seen([drift("input.a")]);
  expect(await selfMade()).toEqual([]);
});

test("two replicas make one proposal, and what was rejected isn't proposed again until it moves", async () => {
  const { seen, proposesAfter, tenant, environmentId, decide } = here;
  await seen([drift("input.a")]);
  await proposesAfter(0n);
  const runs = await Promise.all([service.runOut("auto-propose"), service.runOut("auto-propose")]);
  expect(runs.flat().filter((id) => id === environmentId)).toHaveLength(1);
  const [proposal] = (await tenant.listProposals({ environmentId, state: ProposalState.PROPOSED })).proposals;
  if (!proposal) throw new Error("nothing was proposed");
  await decide(proposal, Decision.REJECT);
  expect(await selfMade()).toEqual([]);
  await seen([drift("input.a")]);
  expect(await selfMade()).toEqual([]);
  await seen([drift("input.a", "edited again")]);
  expect(await selfMade()).toHaveLength(1);
});

test("what has failed, or was applied and didn't help, isn't proposed again until it moves", async () => {
  const { seen, proposesAfter, decide } = here;
  await seen([drift("input.a")]);
  await proposesAfter(0n, { direction: REFRESH });
  service.provisioning.firstState = RunState.FAILED;
  const [first] = await selfMade();
  expect(first && (await decide(first))?.state).toBe(ProposalState.FAILED);
  await seen([drift("input.a")]);
  expect(await selfMade()).toEqual([]);

  service.provisioning.firstState = RunState.APPLIED;
  await seen([drift("input.a", "edited again")]);
  const [second] = await selfMade();
  expect(second && (await decide(second))?.state).toBe(ProposalState.COMPLETED);
  await seen([drift("input.a", "edited again")]);
  expect(await selfMade()).toEqual([]);
});

test("nothing is proposed before the delay is over, counted from the last change", async () => {
  const { seen, proposesAfter } = here;
  await proposesAfter(60n);
  await seen([drift("input.a")]);
  await age(59);
  expect(await selfMade()).toEqual([]);
  await seen([drift("input.a", "edited again")]);
  await age(2);
  expect(await selfMade()).toEqual([]);
  await age(60);
  expect(await selfMade()).toHaveLength(1);
});

test("a value that goes to and fro within the delay is one finding and no proposal", async () => {
  const { seen, proposesAfter, findings } = here;
  await proposesAfter(60n);
  for (let turn = 0; turn < 5; turn += 1) {
    await seen([drift("input.a")]);
    await age(20);
    expect(await selfMade()).toEqual([]);
    await seen([]);
    await age(20);
    expect(await selfMade()).toEqual([]);
  }
  expect(await findings()).toHaveLength(1);
});

test("a group waits for the newest of its findings, and other groups don't", async () => {
  const { seen, proposesAfter } = here;
  await proposesAfter(60n, { grouping: FindingGrouping.RESOURCE });
  await seen([drift("input.a", "edited", "terraform_data.one"), drift("input.a", "edited", "terraform_data.two")]);
  await age(61);
  await seen([
    drift("input.a", "edited", "terraform_data.one"),
    drift("input.b", "edited", "terraform_data.one"),
    drift("input.a", "edited", "terraform_data.two"),
  ]);
  const [proposal, another] = await selfMade();
  expect(another).toBeUndefined();
  const covered = await service.database.finding.findMany({ where: { id: { in: proposal?.findingIds ?? [] } } });
  expect(covered).toMatchObject([{ resource: "terraform_data.two", attribute: "input.a" }]);
});

test("there is one undecided proposal at a time, however many groups have drifted", async () => {
  const { seen, proposesAfter, decide } = here;
  await proposesAfter(0n, { grouping: FindingGrouping.RESOURCE });
  await seen(Array.from({ length: 20 }, (_, index) => drift("input.a", "edited", `terraform_data.r${index}`)));
  const [first] = await selfMade();
  expect(first?.findingIds).toHaveLength(1);
  expect(await selfMade()).toEqual([]);
  if (first) await decide(first, Decision.REJECT);
  const [second] = await selfMade();
  expect(second?.findingIds).toHaveLength(1);
  expect(second?.findingIds).not.toEqual(first?.findingIds);
});

test("a thousand resources that drift at once are one proposal by itself", async () => {
  const { seen, proposesAfter } = here;
  await proposesAfter(0n);
  await seen(Array.from({ length: 1_000 }, (_, index) => drift("input.a", "edited", `terraform_data.r${index}`)));
  const [proposal] = await selfMade();
  expect(proposal?.findingIds).toHaveLength(1_000);
});

test("the configured direction is proposed, and what can't be adopted is shown with the reason", async () => {
  const { seen, proposesAfter, proposalNow } = here;
  await proposesAfter(0n, { direction: ADOPT });
  await seen([drift("input.a")]);
  service.provisioning.adoption = new ConnectError("no engine", Code.Unavailable);
  expect(await selfMade()).toEqual([]);

  const refusals = [{ address: "terraform_data.app", attribute: "input.a", reason: "no parameter stands for it" }];
  service.provisioning.adoption = { refusals };
  const [refused] = await selfMade();
  expect(refused).toMatchObject({ direction: ADOPT, preview: { state: PreviewState.FAILED } });
  expect((refused && (await proposalNow(refused)))?.preview?.failure).toContain("no parameter stands for it");

  if (refused) await here.decide(refused, Decision.REJECT);
  await seen([drift("input.a", "edited again")]);
  service.provisioning.adoption = { parameters: { a: "edited again" } };
  expect(await selfMade()).toMatchObject([{ direction: ADOPT, preview: { state: PreviewState.READY } }]);
});

test("each class of environment has its own delay, or the one for all", () => {
  const settings = { ...service.context.settings, PROPOSE_AFTER_SECONDS: 60, PROPOSE_AFTER_SECONDS_PRODUCTION: 900 };
  expect(proposeAfter(settings, "PRODUCTION")).toBe(900);
  expect(proposeAfter(settings, "STAGING")).toBe(60);
  expect(proposeAfter(service.context.settings, "STAGING")).toBeNull();
});
