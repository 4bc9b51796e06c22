import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { inboxOf } from "@runtime-cloud/contracts/events/inbox-of";
import { AttemptOutcomeRecordedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/run_control_pb";
import { PoolKind, PoolScaling } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { AttemptOutcome } from "@runtime-cloud/contracts/runtimecloud/types/v1/run_control_pb";
import { inboxJob } from "@runtime-cloud/eventing/inbox-job";
import { freePort } from "@runtime-cloud/local-servers/ports";
import { type ServiceProcess, startServiceProcess } from "@runtime-cloud/runtime-cloud-host/service-process";
import { eventually } from "@runtime-cloud/runtime-cloud-host/story/eventually";
import type pg from "pg";
import { deploy, type TestDeployment } from "../_support/deployment.ts";
import { causedTwice, heardBy, notTakenOnce, unheard, unpublished } from "../_support/event-invariants.ts";

const START_MS = 90_000;
const TEST_MS = 120_000;
const LEASES = 60;

let deployment: TestDeployment;
let second: ServiceProcess;

beforeAll(async () => {
  deployment = await deploy([]);
  const { services } = deployment;
  const [PORT, ADMIN_PORT] = [String(await freePort()), String(await freePort())];
  second = startServiceProcess("execution-capacity", { ...services.variables("execution-capacity"), PORT, ADMIN_PORT });
  await Promise.all([services.start("execution-capacity"), second.ready()]);
}, START_MS);
afterAll(() => deployment.close(), START_MS);

test(
  "two processes of a service share its outbox and inbox, and when one is killed amid it, nothing is lost or done twice",
  async () => {
    const { stage, backend } = deployment;
    const { capacity, controlPlane, audience, tenantId, projectId, newId } = stage;
    const database = stage.databases["execution-capacity"];
    const pool = { poolId: "pool", kind: PoolKind.RUN_WORKERS, scaling: PoolScaling.STATIC, size: LEASES };
    await capacity.setWorkerPool(pool);
    const holders = Array.from({ length: LEASES }, () => newId());
    for (const holderId of holders) {
      const holder = { holderKind: "Attempt", holderId, ttl: { seconds: 600n } };
      await capacity.acquireLease({ poolId: "pool", projectId, ...holder });
    }

    for (const attemptId of holders) {
      const ids = { runId: newId(), stepId: newId(), attemptId };
      const outcome = { ...ids, outcome: AttemptOutcome.SUCCEEDED };
      await controlPlane.announce(AttemptOutcomeRecordedSchema, { id: attemptId, tenantId, projectId }, outcome);
    }
    // And each once more, as a queue delivers it that forgot the first delivery.
    const events = controlPlane.announced();
    const again = events.map(inboxJob).map((job) => ({ ...job, opts: { ...job.opts, jobId: `evt_${newId()}` } }));
    await backend.add(inboxOf("ExecutionCapacityService"), again);
    await eventually("some leases released", async () => (await releases(database)).length > 0 || undefined);
    await second.kill();

    const queue = backend.queue(inboxOf("ExecutionCapacityService"));
    const taken = { handler: "ReleaseAttemptLease", events: events.map(({ id }) => id) };
    const broken = async () => [
      ...(await unpublished(database)),
      ...(await unheard(database, "DashboardService", heardBy(audience))),
      ...(await notTakenOnce(database, { ...taken, effects: await releases(database) })),
      ...(await causedTwice(database)),
    ];
    await eventually("an inbox that is worked off", async () => {
      const open = await queue.getJobCountByTypes("waiting", "active", "delayed", "prioritized");
      return (open === 0 && (await broken()).length === 0) || undefined;
    });
    expect(await broken()).toEqual([]);
  },
  TEST_MS,
);

/** The causes of the releases so far. */
async function releases(database: pg.Pool): Promise<string[]> {
  const { rows } = await database.query<{ cause: string }>(
    "SELECT causation_id AS cause FROM transition WHERE actor = 'event:ReleaseAttemptLease'",
  );
  return rows.map(({ cause }) => cause);
}
