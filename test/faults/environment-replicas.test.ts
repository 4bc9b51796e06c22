import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import {
  ProvisioningAppliedSchema,
  SpecificationDeclaredSchema,
} from "@runtime-cloud/contracts/runtimecloud/events/v1/provisioning_pb";
import { FindingState } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { ProvisioningKind, SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { inboxJob } from "@runtime-cloud/eventing/inbox-job";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { deploy, type TestDeployment } from "../_support/deployment.ts";
import { driftingEnvironment, publishWeb, QUICK_BASELINE } from "../_support/drifting-environments.ts";
import { type Replica, revisionsOf, startReplica } from "../_support/environment-replica.ts";
import { causedTwice } from "../_support/event-invariants.ts";
import { countRows } from "../_support/rows.ts";
import { eventAbout } from "../_support/runtime-environment.ts";

const START_MS = 90_000;
const TEST_MS = 120_000;
const LOOKS = 6;
const SUBSCRIBER = "RuntimeEnvironmentService";

let deployment: TestDeployment;
let replica: Replica;

beforeAll(async () => {
  const services = ["iac-provisioning", "runtime-environment"] as const;
  deployment = await deploy(services, undefined, { baselineProgram: QUICK_BASELINE });
  await publishWeb(deployment.stage);
  replica = await startReplica(deployment);
}, START_MS);
afterAll(async () => {
  await replica.close();
  await deployment.close();
}, START_MS);

test(
  "two processes that observe one environment find a drift once, and number each change once",
  async () => {
    const { stage } = deployment;
    const environment = await driftingEnvironment(stage);
    const { environmentId } = environment;
    const lookFromBoth = () =>
      Promise.all(
        Array.from({ length: LOOKS }, async (_, index) => {
          const { environment: seen } = await (
            index % 2 === 0 ? stage.environments : replica.environments
          ).observeEnvironment({
            environmentId,
          });
          return seen;
        }),
      );
    await environment.setReplicas(1);
    await lookFromBoth();
    expect(await environment.findings()).toMatchObject([{ state: FindingState.OPEN }]);
    await environment.setReplicas(3);
    await lookFromBoth();
    await environment.setReplicas(2);
    await lookFromBoth();
    expect((await environment.findings()).map(({ state }) => state)).toEqual([
      FindingState.OPEN,
      FindingState.RESOLVED,
    ]);

    const revisions = await revisionsOf(stage.databases["runtime-environment"], environmentId);
    expect(revisions).toEqual(revisions.map((_, index) => index + 1));
    expect(BigInt(revisions.length)).toBe((await environment.get()).revision);
    await eventually("each drift to be announced once", () => (environment.detected() === 2 ? true : undefined));
    expect((await causedTwice(stage.databases["runtime-environment"])).filter(isNoLook)).toEqual([]);
  },
  TEST_MS,
);

test(
  "a watcher whose replica is killed goes on at the other one, without a gap or a repeat",
  async () => {
    const environment = await driftingEnvironment(deployment.stage);
    const { environmentId } = environment;
    const push = (replicasReady: number) =>
      deployment.stage.environments.observeEnvironment({
        environmentId,
        observation: {
          observedAt: timestampFromDate(new Date()),
          components: [{ name: "web", version: "1.0.0", replicasDesired: 9, replicasReady }],
        },
      });
    const told: bigint[] = [];
    const cut = (async () => {
      for await (const { update } of replica.environments.watchEnvironment({ environmentId })) {
        if (update.value) told.push(update.value.revision);
      }
    })();
    await eventually("the snapshot", () => (told.length === 1 ? true : undefined));
    await push(1);
    await eventually("a change", () => (told.length >= 2 ? true : undefined));
    await Promise.all([expect(cut).rejects.toThrow(), replica.kill()]);
    for (const replicasReady of [2, 3, 4]) await push(replicasReady);

    const { revision } = await environment.get();
    const leave = new AbortController();
    const rest = deployment.stage.environments.watchEnvironment(
      { environmentId, afterRevision: told.at(-1) ?? 0n },
      { signal: leave.signal },
    );
    for await (const { update } of rest) {
      expect(update.case).toBe("change");
      if (update.value) told.push(update.value.revision);
      if (told.at(-1) === revision) break;
    }
    leave.abort();
    const first = told[0] ?? 0n;
    expect(told).toEqual(told.map((_, index) => first + BigInt(index)));
    expect(told.at(-1)).toBe(revision);
  },
  TEST_MS,
);

test(
  "events that come in any order, and twice, make one inventory that knows the newest of each",
  async () => {
    const { stage, inboxIsDone } = deployment;
    const { tenantId, projectId } = stage;
    const environmentId = uuidv7();
    const about = <Desc extends DescMessage>(schema: Desc, fields: MessageInitShape<Desc>) =>
      eventAbout(schema, fields, { id: environmentId, tenantId });
    const declared = (version: number) =>
      about(SpecificationDeclaredSchema, {
        specificationId: uuidv7(),
        tenantId,
        environmentId,
        kind: SpecificationKind.RELEASE,
        version,
        programVersion: "web@1.0.0",
      });
    const [first, second] = [declared(1), declared(2)];
    const applied = about(ProvisioningAppliedSchema, {
      provisioningRunId: uuidv7(),
      kind: ProvisioningKind.PROMOTION,
      tenantId,
      projectId,
      environmentId,
      specificationVersion: 1,
      outputs: {},
    });
    const created = about(EnvironmentCreatedSchema, {
      environmentId,
      projectId,
      tenantId,
      class: EnvironmentClass.TEST,
    });

    await deliver(applied, second, first);
    const inbox = deployment.backend.queue(inboxOf(SUBSCRIBER));
    await eventually("all three to be put off", async () =>
      (await inbox.getJobCountByTypes("delayed")) === 3 ? true : undefined,
    );
    await deliver(applied, created);
    await eventually("the versions that were declared and applied", async () => {
      const { environment } = await stage.environments.getEnvironment({ environmentId });
      expect(environment?.versions).toMatchObject([{ kind: "RELEASE", declared: 2, applied: 1 }]);
      return true;
    });
    await deliver(created, first, second, applied);
    await inboxIsDone(SUBSCRIBER);
    const { environment } = await stage.environments.getEnvironment({ environmentId });
    expect(environment?.versions).toMatchObject([{ kind: "RELEASE", declared: 2, applied: 1 }]);
    const database = stage.databases["runtime-environment"];
    expect(await countRows(database, "transition WHERE aggregate_id = $1 AND event = 'create'", environmentId)).toBe(1);
    expect((await causedTwice(database)).filter(isNoLook)).toEqual([]);
  },
  TEST_MS,
);

/** Puts events on the service's inbox, once more if they were there before. */
async function deliver(...events: readonly CloudEvent[]): Promise<void> {
  const jobs = events.map((event) => {
    const job = inboxJob(event);
    return { ...job, opts: { ...job.opts, jobId: uuidv7() } };
  });
  await deployment.backend.add(inboxOf(SUBSCRIBER), jobs);
}

/** A look that an event asks for may find changes more than once: each observer's sight is taken in by itself. */
function isNoLook(caused: string): boolean {
  return !/ RuntimeInventory \S+ observe /.test(caused);
}
