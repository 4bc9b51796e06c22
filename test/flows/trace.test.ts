import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type CloudEvent, envelop } from "@runtime-cloud/contracts/events/cloud-event";
import { eventOf, eventOnTopic } from "@runtime-cloud/contracts/events/event-catalogue";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import { AttemptOutcomeRecordedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/run_control_pb";
import { PromotionApprovedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/promotion_pb";
import { DecideReconciliationRequest_Decision as Decision } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { PoolKind, PoolScaling, PoolState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { ProposalState, ReconciliationDirection } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { AttemptOutcome } from "@runtime-cloud/contracts/runtimecloud/types/v1/run_control_pb";
import { inboxJob } from "@runtime-cloud/eventing/inbox-job";
import { OBSERVATIONS } from "@runtime-cloud/runtime-environment/observing/schedule";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { deploy, type TestDeployment } from "../_support/deployment.ts";

const SERVICES = ["runtime-environment", "execution-capacity", "iac-provisioning"] as const;
const START_MS = 60_000;
const CHAPTER_MS = 90_000;

const CORRELATION_ID = "order-4711";
const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const traceparent = `00-${TRACE_ID}-00f067aa0ba902b7-01`;
const asked = { headers: { "x-correlation-id": CORRELATION_ID, traceparent } };

/** So that no look comes by itself while the test plays. */
const SELDOM = { observeEvery: { seconds: 3_600n }, staleAfter: { seconds: 7_200n } };

/** What the Control Plane said: these events and the calls are the roots of all else. */
const said: CloudEvent[] = [];
const environmentId = uuidv7();
let deployment: TestDeployment;

beforeAll(async () => {
  deployment = await deploy(SERVICES);
}, START_MS);
afterAll(() => deployment.close(), START_MS);

test(
  "an event's trace goes on from its handlers through the run and the look at what it did",
  async () => {
    const { tenantId, projectId } = deployment.stage;
    const fields = { environmentId, tenantId, projectId, class: EnvironmentClass.STAGING };
    const created = await say(EnvironmentCreatedSchema, environmentId, fields);

    const declared = await announced("SpecificationDeclared", causedBy(created));
    await transition({ aggregate: "DeploymentSpecification", actor: "event:ProvisionBaseline", cause: created });
    await announced("ProvisioningPlanned", causedBy(created));
    const applied = await announced("ProvisioningApplied", causedBy(created));
    await transition({ aggregate: "ProvisioningRun", actor: "executor:", cause: created });
    expect(applied.subject).not.toBe(declared.subject);

    const seen = await announced("ObservedStateChanged", causedBy(applied));
    await transition({ aggregate: "RuntimeInventory", actor: "deadline:observation", cause: applied });
    expect(seen.subject).toBe(environmentId);
  },
  CHAPTER_MS,
);

test(
  "a decision's trace goes on into the run that another service plans for it, and back",
  async () => {
    const { environments, tenantId, projectId, targetsDir } = deployment.stage;
    const promotion = { promotionId: uuidv7(), releaseId: uuidv7(), approvalId: uuidv7() };
    const approved = await say(PromotionApprovedSchema, promotion.promotionId, {
      ...{ ...promotion, tenantId, projectId, environmentId, programVersion: "web-service@1.0.0" },
      parameters: { name: "storefront", environment: "staging", version: "2.4.1", replicas: 2 },
    });
    const released = await announced("ProvisioningApplied", causedBy(approved));
    await announced("ObservedStateChanged", causedBy(released));
    await environments.configureEnvironment({ environmentId, ...SELDOM }, asked);
    await nobodyLooks();

    await rm(join(targetsDir, tenantId, environmentId, "release", "service.yaml"));
    await environments.observeEnvironment({ environmentId }, asked);
    await announced("RuntimeDriftDetected", isRoot);
    const direction = ReconciliationDirection.REVERT_TO_SPECIFICATION;
    const { proposal } = await environments.proposeReconciliation({ environmentId, direction }, asked);
    const { proposalId = "", digest = "" } = proposal ?? {};
    await environments.decideReconciliation({ proposalId, digest, decision: Decision.ACCEPT }, asked);
    const decided = await announced("ReconciliationDecided", isRoot);

    const applied = await announced(
      "ProvisioningApplied",
      ({ data }) => data["provisioningRunId"] === decided.data["provisioningRunId"],
    );
    expect(applied.causationid).toBeUndefined();
    await eventually("COMPLETED", async () => {
      const { proposal: ended } = await environments.getProposal({ proposalId });
      return ended?.state === ProposalState.COMPLETED ? true : undefined;
    });
    await transition({ aggregate: "ReconciliationProposal", actor: "event:ObserveAfterApply", cause: applied });
    await transition({ aggregate: "DriftFinding", actor: "deadline:observation", cause: applied });
  },
  CHAPTER_MS,
);

test(
  "a wanted size's trace goes on through the deadline that has it provisioned",
  async () => {
    const { capacity } = deployment.stage;
    const poolId = "elastic";
    const scaling = { scaling: PoolScaling.ELASTIC, environmentId, programVersion: "worker-pool@1.0.0" };
    await capacity.setWorkerPool({ poolId, kind: PoolKind.RUN_WORKERS, size: 1, ...scaling }, asked);
    await eventually("the pool is ACTIVE", async () => {
      const { pool } = await capacity.getWorkerPool({ poolId });
      return pool?.state === PoolState.ACTIVE ? true : undefined;
    });
    const applied = await announced(
      "ProvisioningApplied",
      ({ data }) => data["kind"] === "PROVISIONING_KIND_POOL_RESIZE",
    );
    await announced("WorkerPoolStateChanged", causedBy(applied));
  },
  CHAPTER_MS,
);

test(
  "whoever is granted what an event freed has the event as its cause",
  async () => {
    const { capacity, projectId } = deployment.stage;
    const poolId = "static";
    const pool = { poolId, kind: PoolKind.RUN_WORKERS, scaling: PoolScaling.STATIC, size: 1 };
    await capacity.setQuota({ concurrentRuns: 1, concurrentSandboxes: 1 }, asked);
    await announced("QuotaChanged", isRoot);
    await capacity.setWorkerPool(pool, asked);
    const [holder, waiter] = [uuidv7(), uuidv7()];
    for (const holderId of [holder, waiter]) {
      const request = { poolId, projectId, holderKind: "Attempt", holderId, ttl: { seconds: 600n } };
      await capacity.acquireLease({ ...request, wait: { seconds: 60n } }, asked);
    }
    await announced("QuotaExceeded", isRoot);
    const attempt = { runId: uuidv7(), stepId: uuidv7(), attemptId: holder, outcome: AttemptOutcome.SUCCEEDED };
    const ended = await say(AttemptOutcomeRecordedSchema, holder, attempt);
    await announced("CapacityLeaseReleased", causedBy(ended));
    const granted = await announced("CapacityLeaseGranted", causedBy(ended));
    expect(granted.data["holderId"]).toBe(waiter);
  },
  CHAPTER_MS,
);

test("every event and every transition of all this has the one correlation and the one trace", async () => {
  const events = await outbox();
  const known = new Set([...said, ...events].map(({ id }) => id));
  for (const { type, correlationid, causationid, traceparent: trace } of events) {
    expect({ type, correlationid, trace: trace?.split("-")[1] }).toEqual({
      type,
      correlationid: CORRELATION_ID,
      trace: TRACE_ID,
    });
    if (causationid !== undefined) expect(known).toContain(causationid);
  }
  const transitions = await history();
  expect(transitions.length).toBeGreaterThan(events.length);
  for (const { aggregate, event, correlation_id, causation_id, traceparent: trace } of transitions) {
    expect({ aggregate, event, correlation_id, trace: trace?.split("-")[1] }).toEqual({
      ...{ aggregate, event },
      correlation_id: CORRELATION_ID,
      trace: TRACE_ID,
    });
    if (causation_id !== null) expect(known).toContain(causation_id);
  }
});

/** Puts an event of the Control Plane, which is part of the trace, on the inboxes of those of us that read it. */
async function say<Desc extends DescMessage>(
  schema: Desc,
  id: string,
  fields: MessageInitShape<Desc>,
): Promise<CloudEvent> {
  const { tenantId, projectId } = deployment.stage;
  const event = envelop(schema, fields, {
    ...{ id: uuidv7(), at: systemClock.now(), subject: { id, tenantId, projectId }, aggregateVersion: 1 },
    cause: { correlationId: CORRELATION_ID, traceparent },
  });
  said.push(event);
  const readers = eventOf(schema).consumers.filter((consumer) => OURS.has(consumer));
  await Promise.all(readers.map((reader) => deployment.backend.add(inboxOf(reader), [inboxJob(event)])));
  return event;
}

const OURS = new Set(["IaCProvisioningService", "ExecutionCapacityService", "RuntimeEnvironmentService"]);

function causedBy({ id }: CloudEvent) {
  return ({ causationid }: CloudEvent) => causationid === id;
}

/** Caused by a call. */
function isRoot({ causationid }: CloudEvent): boolean {
  return causationid === undefined;
}

function announced(name: string, fits: (event: CloudEvent) => boolean): Promise<CloudEvent> {
  return eventually(`a fitting ${name}`, async () => {
    const events = await outbox();
    return events.find((event) => eventOnTopic(event.type)?.name === name && fits(event));
  });
}

/** Waits until every look that was asked for is over, so that the next one is the test's. */
function nobodyLooks(): Promise<true> {
  const { backend, stage } = deployment;
  return eventually("no look under way", async () => {
    const jobs = await backend.queue(OBSERVATIONS).getJobCountByTypes("waiting", "active", "delayed", "prioritized");
    const { rows } = await stage.databases["runtime-environment"].query<{ due: number }>(
      `SELECT count(*)::int AS due FROM inventory
       WHERE look_correlation_id IS NOT NULL OR observe_at <= clock_timestamp()`,
    );
    return jobs === 0 && rows[0]?.due === 0 ? true : undefined;
  });
}

/** Waits for a transition of an aggregate by an actor whose name begins so, caused by an event. */
async function transition(wanted: { aggregate: string; actor: string; cause: CloudEvent }): Promise<void> {
  const { aggregate, actor, cause } = wanted;
  await eventually(`a transition of ${aggregate} by ${actor}, caused by ${cause.type}`, async () => {
    const transitions = await history();
    return transitions.find(
      (each) => each.aggregate === aggregate && each.actor.startsWith(actor) && each.causation_id === cause.id,
    );
  });
}

async function outbox(): Promise<CloudEvent[]> {
  const all = Object.values(deployment.stage.databases).map(async (pool) => {
    const { rows } = await pool.query<{ envelope: CloudEvent }>(
      "SELECT envelope FROM outbox_message ORDER BY position",
    );
    return rows.map(({ envelope }) => envelope);
  });
  return (await Promise.all(all)).flat();
}

async function history(): Promise<TransitionRow[]> {
  const all = Object.values(deployment.stage.databases).map(async (pool) => {
    const { rows } = await pool.query<TransitionRow>(
      "SELECT aggregate, event, actor, correlation_id, causation_id, traceparent FROM transition ORDER BY id",
    );
    return rows;
  });
  return (await Promise.all(all)).flat();
}

interface TransitionRow {
  aggregate: string;
  event: string;
  actor: string;
  correlation_id: string;
  causation_id: string | null;
  traceparent: string | null;
}
