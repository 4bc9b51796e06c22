import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Code } from "@connectrpc/connect";
import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import {
  ProvisioningAppliedSchema,
  ProvisioningFailedSchema,
  SpecificationDeclaredSchema,
} from "@runtime-cloud/contracts/runtimecloud/events/v1/provisioning_pb";
import { DecideReconciliationRequest_Decision as Decision } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import {
  DriftKind,
  FindingState,
  ProposalState,
  ReconciliationDirection,
  SyncStatus,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import {
  ProvisioningKind,
  RunState,
  SpecificationKind,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { type Inbox, startInbox } from "@runtime-cloud/eventing/inbox";
import { inboxJob } from "@runtime-cloud/eventing/inbox-job";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { redisBackend } from "@runtime-cloud/eventing/queues/redis-backend";
import { until } from "@runtime-cloud/local-servers/until";
import { inboxHandlers } from "@runtime-cloud/runtime-environment/inbox";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { applied } from "../../_support/provisioning-server.ts";
import { testRedis } from "../../_support/redis.ts";
import {
  type EnvironmentClient,
  type EnvironmentService,
  eventAbout,
  refusalOf,
  startEnvironments,
} from "../../_support/runtime-environment.ts";

const SUBSCRIBER = "RuntimeEnvironmentService";

let service: EnvironmentService;
let backend: QueueBackend;
let inbox: Inbox;
let outcomes: string[] = [];
let tenantId: string;
let tenant: EnvironmentClient;
let environmentId: string;

beforeAll(async () => {
  service = await startEnvironments();
  const logger = silentLogger();
  backend = redisBackend({ ...testRedis(), logger });
  const handlers = inboxHandlers(service.context);
  const observe = (outcome: string) => void outcomes.push(outcome);
  inbox = startInbox({ subscriber: SUBSCRIBER, backend, context: service.context, handlers, logger, observe });
});
afterAll(async () => {
  await inbox.stop();
  await backend.close();
  await service.close();
});
beforeEach(() => {
  outcomes = [];
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
  environmentId = uuidv7();
});

/** Sends events one by one and waits until each was taken in. */
const send = async (...events: CloudEvent[]) => {
  for (const event of events) {
    const before = settled();
    await backend.add(inboxOf(SUBSCRIBER), [inboxJob(event)]);
    await until(`${event.type} to be taken in`, 20_000, () => settled() > before || undefined);
  }
};
const settled = () => outcomes.filter((outcome) => outcome === "handled" || outcome === "duplicate").length;
const about = () => ({ id: environmentId, tenantId });
const projectId = uuidv7();
const created = () =>
  eventAbout(
    EnvironmentCreatedSchema,
    { environmentId, projectId, tenantId, class: EnvironmentClass.STAGING },
    about(),
  );
const declared = (version: number) =>
  eventAbout(
    SpecificationDeclaredSchema,
    {
      specificationId: uuidv7(),
      tenantId,
      environmentId,
      kind: SpecificationKind.BASELINE,
      version,
      programVersion: "network@1.0.0",
    },
    about(),
  );
const appliedEvent = (version: number, run: { id: string; kind: ProvisioningKind } = baselineRun()) =>
  eventAbout(
    ProvisioningAppliedSchema,
    {
      provisioningRunId: run.id,
      kind: run.kind,
      tenantId,
      projectId,
      environmentId,
      specificationVersion: version,
      outputs: {},
    },
    about(),
  );
const failedEvent = (runId: string, reason: string) =>
  eventAbout(
    ProvisioningFailedSchema,
    { provisioningRunId: runId, kind: ProvisioningKind.RECONCILIATION, tenantId, environmentId, reason },
    about(),
  );
const baselineRun = () => ({ id: uuidv7(), kind: ProvisioningKind.BASELINE });
const environment = async () => (await tenant.getEnvironment({ environmentId })).environment;
const accepted = async () => {
  const drift = [{ address: "terraform_data.app", kind: DriftKind.ATTRIBUTE_CHANGED, attribute: "input" }];
  service.provisioning.applied.set(environmentId, [applied({ drift })]);
  await tenant.observeEnvironment({ environmentId });
  const direction = ReconciliationDirection.REVERT_TO_SPECIFICATION;
  const { proposal } = await tenant.proposeReconciliation({ environmentId, direction });
  if (!proposal) throw new Error("no proposal");
  const { proposalId, digest } = proposal;
  const decided = await tenant.decideReconciliation({ proposalId, digest, decision: Decision.ACCEPT });
  return { proposalId, runId: decided.proposal?.provisioningRunId ?? "" };
};
const proposalState = async (proposalId: string) => (await tenant.getProposal({ proposalId })).proposal?.state;
const findings = async () => (await tenant.listFindings({ environmentId })).findings;

test("StartInventory makes an environment known once, however often its creation is told", async () => {
  const event = created();
  expect((await refusalOf(tenant.getEnvironment({ environmentId }))).code).toBe(Code.NotFound);
  await send(event, { ...event, id: uuidv7() });
  expect(await environment()).toMatchObject({ environmentId, tenantId, projectId, class: EnvironmentClass.STAGING });
  expect(await service.database.transition.count({ where: { aggregateId: environmentId } })).toBe(1);
});

test("StartInventory watches an environment of a class that it doesn't know with the most care", async () => {
  const event = created();
  await send({ ...event, data: { ...event.data, class: "ENVIRONMENT_CLASS_DISASTER_RECOVERY" } });
  expect(await environment()).toMatchObject({ class: EnvironmentClass.PRODUCTION });
});

test("an event that comes twice has its effect once", async () => {
  const [creation, declaration, apply] = [created(), declared(1), appliedEvent(1)];
  await send(creation, declaration, apply);
  service.provisioning.applied.set(environmentId, [applied()]);
  await tenant.observeEnvironment({ environmentId });
  const before = await service.announced(tenantId);
  const redelivered = { ...inboxJob(apply), opts: { jobId: `again_${apply.id}` } };
  await backend.add(inboxOf(SUBSCRIBER), [redelivered]);
  await until("the duplicate to be seen", 20_000, () => outcomes.includes("duplicate") || undefined);
  expect(await service.announced(tenantId)).toEqual(before);
});

test("an event that comes before its environment's creation is taken in after it", async () => {
  await backend.add(inboxOf(SUBSCRIBER), [inboxJob(declared(3))]);
  await until("the early event to be put off", 20_000, () => outcomes.includes("retried") || undefined);
  await send(created());
  await until("the early event to be taken in", 20_000, () => settled() >= 2 || undefined);
  expect((await environment())?.versions).toMatchObject([{ kind: "BASELINE", declared: 3 }]);
});

test("TrackDeclared and ObserveAfterApply: the newest version wins, whatever the order in which they are told", async () => {
  await send(created(), declared(2), declared(1), appliedEvent(2), appliedEvent(1));
  expect((await environment())?.versions).toMatchObject([{ kind: "BASELINE", declared: 2, applied: 2 }]);
  await send(declared(3));
  expect(await environment()).toMatchObject({ sync: SyncStatus.PENDING_SPECIFICATION });
});

test("an applied version is announced while the environment is fresh, and looked at soon", async () => {
  await send(created());
  service.provisioning.applied.set(environmentId, [applied()]);
  await tenant.observeEnvironment({ environmentId });
  await send(declared(2), appliedEvent(2));
  const announced = (await service.announced(tenantId)).at(-1);
  expect(announced).toMatchObject({
    event: "ObservedStateChanged",
    data: { changes: { changes: [{ path: "/versions/BASELINE/applied", from: 1, to: 2 }] }, stale: false },
  });
  expect(service.enqueued).toContain(environmentId);
  expect(await service.runOut("observation")).toContain(environmentId);
});

test("ObserveAfterApply: an applied run completes its proposal, and the next observation closes its findings", async () => {
  await send(created());
  const { proposalId, runId } = await accepted();
  await send(appliedEvent(1, { id: runId, kind: ProvisioningKind.RECONCILIATION }));
  expect(await proposalState(proposalId)).toBe(ProposalState.COMPLETED);
  service.provisioning.applied.set(environmentId, [applied()]);
  await tenant.observeEnvironment({ environmentId });
  expect(await findings()).toMatchObject([{ state: FindingState.RESOLVED }]);
});

test("ObserveAfterFailure: a failed run fails its proposal with the run's reason and opens its findings", async () => {
  await send(created());
  const { proposalId, runId } = await accepted();
  await send(failedEvent(runId, "ENGINE_ERROR: terraform_data.app: no space left"));
  const { proposal } = await tenant.getProposal({ proposalId });
  expect(proposal).toMatchObject({
    state: ProposalState.FAILED,
    reason: "ENGINE_ERROR: terraform_data.app: no space left",
  });
  expect(await findings()).toMatchObject([{ state: FindingState.OPEN }]);
  expect(service.enqueued).toContain(environmentId);
});

test("the end of a run that comes before the run's id is stored isn't lost", async () => {
  await send(created());
  service.provisioning.whilePlanning = async (runId) => {
    service.provisioning.runs.set(runId, { state: RunState.APPLIED });
    await send(appliedEvent(1, { id: runId, kind: ProvisioningKind.RECONCILIATION }));
  };
  const { proposalId } = await accepted();
  service.provisioning.whilePlanning = () => Promise.resolve();
  expect(await proposalState(proposalId)).toBe(ProposalState.COMPLETED);
});

test("an event in another tenant's name doesn't touch the environment", async () => {
  await send(created());
  const foreign = eventAbout(
    ProvisioningAppliedSchema,
    {
      provisioningRunId: uuidv7(),
      kind: ProvisioningKind.BASELINE,
      tenantId: "intruder",
      projectId,
      environmentId,
      specificationVersion: 9,
      outputs: {},
    },
    { id: environmentId, tenantId: "intruder" },
  );
  await backend.add(inboxOf(SUBSCRIBER), [inboxJob(foreign)]);
  await until("the event to be refused", 20_000, () => outcomes.includes("retried") || undefined);
  expect((await environment())?.versions).toEqual([]);
});
