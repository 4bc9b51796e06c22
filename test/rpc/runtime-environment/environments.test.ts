import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { DecideReconciliationRequest_Decision as Decision } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import {
  DriftKind,
  FindingState,
  InventoryState,
  ProposalState,
  ReconciliationDirection,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { applied } from "../../_support/provisioning-server.ts";
import {
  type EnvironmentClient,
  type EnvironmentService,
  refusalOf,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

let service: EnvironmentService;
let tenantId: string;
let tenant: EnvironmentClient;
let environmentId: string;

beforeAll(async () => {
  service = await startEnvironments();
});
afterAll(() => service.close());
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = await service.created(tenantId);
});

const direction = ReconciliationDirection.REVERT_TO_SPECIFICATION;
const drifted = async () => {
  const drift = [{ address: "terraform_data.app", kind: DriftKind.ATTRIBUTE_CHANGED, attribute: "input" }];
  service.provisioning.applied.set(environmentId, [applied({ drift })]);
  await tenant.observeEnvironment({ environmentId });
  const { proposal } = await tenant.proposeReconciliation({ environmentId, direction });
  return {
    findingId: proposal?.findingIds[0] ?? "",
    proposalId: proposal?.proposalId ?? "",
    digest: proposal?.digest ?? "",
  };
};
const times = { observeEvery: { seconds: 30n }, staleAfter: { seconds: 120n } };

test("another tenant's environment, finding or proposal is as unknown as one that never was", async () => {
  const { findingId, proposalId, digest } = await drifted();
  const other = service.as(`tenant-${uuidv7()}`);
  const until = timestampFromDate(new Date(Date.now() + 3_600_000));
  const calls = (ids: { environmentId: string; findingId: string; proposalId: string }) => [
    other.getEnvironment(ids),
    other.observeEnvironment(ids),
    other.configureEnvironment({ ...ids, ...times }),
    other.retireEnvironment(ids),
    other.listFindings(ids),
    other.proposeReconciliation({ ...ids, direction }),
    other.suppressDrift({ ...ids, reason: "none", until }),
    other.unsuppressDrift(ids),
    other.getProposal(ids),
    other.decideReconciliation({ ...ids, digest, decision: Decision.ACCEPT }),
  ];
  const unknown = { environmentId: uuidv7(), findingId: uuidv7(), proposalId: uuidv7() };
  const hidden = { environmentId, findingId, proposalId };
  const texts = async (ids: typeof hidden) =>
    Promise.all(
      calls(ids).map(async (call) => {
        const { code, rawMessage } = await refusalOf(call);
        return { code, text: Object.values(ids).reduce((text, id) => text.replaceAll(id, "<id>"), rawMessage) };
      }),
    );
  const refusals = await texts(hidden);
  expect(refusals.map(({ code }) => code)).toEqual(Array(10).fill(Code.NotFound));
  expect(refusals).toEqual(await texts(unknown));
  expect((await other.listEnvironments({})).environments).toEqual([]);
  expect((await other.listProposals({})).proposals).toEqual([]);
});

test("environments are listed by project, state and page, without their contents", async () => {
  const projectId = uuidv7();
  const ids = [];
  for (let count = 0; count < 3; count += 1) ids.push(await service.created(tenantId, projectId));
  const first = await tenant.listEnvironments({ projectId, pageSize: 2 });
  const second = await tenant.listEnvironments({ projectId, pageSize: 2, pageToken: first.nextPageToken });
  const listed = [...first.environments, ...second.environments].map((environment) => environment.environmentId);
  expect(listed).toEqual(ids.sort());
  expect(second.nextPageToken).toBe("");
  expect((await tenant.listEnvironments({ projectId, state: InventoryState.FRESH })).environments).toEqual([]);
  expect((await tenant.listEnvironments({})).environments).toHaveLength(4);
});

test("a configuration sets how often an environment is observed and when it is stale", async () => {
  service.provisioning.applied.set(environmentId, [applied()]);
  await tenant.observeEnvironment({ environmentId });
  const { environment } = await tenant.configureEnvironment({ environmentId, ...times });
  expect(environment).toMatchObject(times);
  const { observedAt, staleAt, observeAt } = await service.database.inventory.findUniqueOrThrow({
    where: { id: environmentId },
  });
  expect(Number(staleAt) - Number(observedAt)).toBe(120_000);
  expect(Number(observeAt) - Date.now()).toBeLessThanOrEqual(30_000);
});

test("a configuration under which an environment is always stale, or out of bounds, is refused by field", async () => {
  const always = await refusalOf(
    tenant.configureEnvironment({ environmentId, observeEvery: { seconds: 60n }, staleAfter: { seconds: 60n } }),
  );
  expect(always.rawMessage).toMatch(/^staleAfter: must be longer than observeEvery \(60 s\)/);
  const bounds = await refusalOf(
    tenant.configureEnvironment({ environmentId, observeEvery: { seconds: 1n }, staleAfter: { seconds: 60n } }),
  );
  expect(bounds.rawMessage).toMatch(/^observeEvery: /);
  expect([always.code, bounds.code]).toEqual([Code.InvalidArgument, Code.InvalidArgument]);
});

test("a retired environment is observed no more, and what was open about it is over", async () => {
  const { proposalId } = await drifted();
  const { environment } = await tenant.retireEnvironment({ environmentId });
  expect(environment?.state).toBe(InventoryState.RETIRED);
  expect((await tenant.getProposal({ proposalId })).proposal?.state).toBe(ProposalState.OBSOLETE);
  expect((await tenant.listFindings({ environmentId })).findings).toMatchObject([{ state: FindingState.RESOLVED }]);

  const calls = [
    tenant.observeEnvironment({ environmentId }),
    tenant.configureEnvironment({ environmentId, ...times }),
    tenant.proposeReconciliation({ environmentId, direction }),
    tenant.retireEnvironment({ environmentId }),
  ];
  for (const call of calls) expect((await refusalOf(call)).code).toBe(Code.FailedPrecondition);
  const observeAt = new Date(Date.now() - 1_000);
  await service.database.inventory.update({ where: { id: environmentId }, data: { observeAt } });
  expect(await service.runOut("observation")).not.toContain(environmentId);
});
