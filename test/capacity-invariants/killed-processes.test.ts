import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { LeaseState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { freePort } from "@runtime-cloud/local-servers/ports";
import { until } from "@runtime-cloud/local-servers/until";
import { startServiceProcess, type ServiceProcess } from "@runtime-cloud/runtime-cloud-host/service-process";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { deploy, type TestDeployment } from "../_support/deployment.ts";
import { attempt, staticPool } from "../_support/execution-capacity.ts";
import { brokenHistory, brokenNow, leftOver } from "./invariants.ts";

const CALLERS = 8;
const LEASES_EACH = 6;
const KILLS = 2;
const START_MS = 60_000;
const TEST_MS = 120_000;

interface Replica {
  env: NodeJS.ProcessEnv & { ADMIN_PORT: string };
  client: Client<typeof ExecutionCapacityService>;
  process: ServiceProcess;
}

let deployment: TestDeployment;
let replicas: Replica[];

beforeAll(async () => {
  deployment = await deploy([]);
  replicas = await Promise.all([startReplica(), startReplica()]);
}, START_MS);
afterAll(async () => {
  for (const { process } of replicas) await process.stop();
  await deployment.close();
}, START_MS);

async function startReplica(): Promise<Replica> {
  const [api, admin] = [await freePort(), await freePort()];
  const variables = deployment.services.variables("execution-capacity");
  const env = { ...variables, PORT: String(api), ADMIN_PORT: String(admin) };
  const transport = createGrpcJsTransport({ address: `127.0.0.1:${api}`, token: () => deployment.token });
  const process = startServiceProcess("execution-capacity", env);
  await process.ready();
  return { env, process, client: createClient(ExecutionCapacityService, transport) };
}

test(
  "two processes that are killed amid their work, one after the other, lose no lease and grant none twice",
  async () => {
    const database = deployment.stage.databases["execution-capacity"];
    await call(0, (client) => client.setWorkerPool(staticPool("build", CALLERS / 2)));
    const total = CALLERS * LEASES_EACH;
    let ended = 0;
    const working = Array.from({ length: CALLERS }, async (_, caller) => {
      for (let n = 0; n < LEASES_EACH; n += 1) {
        await holdAndRelease(caller + n);
        ended += 1;
      }
    });
    const killing = (async () => {
      for (let kill = 0; kill < KILLS; kill += 1) {
        const before = ended;
        await until("some work to be done", TEST_MS, () => ended > Math.min(before + CALLERS, total - 1) || undefined);
        const replica = replicas[kill % replicas.length];
        if (!replica) throw new Error("no replica");
        await replica.process.kill();
        replica.process = startServiceProcess("execution-capacity", replica.env);
        await replica.process.ready();
      }
    })();
    await Promise.all([...working, killing]);

    expect(await brokenNow(database)).toEqual([]);
    expect(await brokenHistory(database)).toEqual([]);
    expect(await leftOver(database)).toEqual([]);
    const { rows } = await database.query<{ released: number }>(
      "SELECT count(*)::int AS released FROM capacity_lease WHERE state = 'RELEASED'",
    );
    expect(rows).toEqual([{ released: total }]);
  },
  TEST_MS,
);

/** A holder's whole life, by whichever process answers. */
async function holdAndRelease(turn: number): Promise<void> {
  const request = attempt("build", { holderId: uuidv7(), ttl: { seconds: 600n }, wait: { seconds: 600n } });
  const acquired = await call(turn, (client) => client.acquireLease(request));
  const leaseId = acquired.lease?.leaseId ?? "";
  await until("the lease to be granted", TEST_MS, async () => {
    const { lease } = await call(turn, (client) => client.getLease({ leaseId }));
    return lease?.state === LeaseState.ACTIVE || undefined;
  });
  const again = await call(turn + 1, (client) => client.acquireLease(request));
  expect(again.lease?.leaseId).toBe(leaseId);
  const { lease } = await call(turn + 1, (client) => client.releaseLease({ leaseId }));
  expect(lease?.state).toBe(LeaseState.RELEASED);
}

/** Asks one process after the other until one answers. */
function call<Answer extends object>(
  turn: number,
  ask: (client: Replica["client"]) => Promise<Answer>,
): Promise<Answer> {
  let tries = turn;
  return until("a process to answer", TEST_MS, async () => {
    const replica = replicas[tries % replicas.length];
    tries += 1;
    if (!replica) return undefined;
    try {
      return await ask(replica.client);
    } catch (error) {
      if (ConnectError.from(error).code !== Code.Unavailable) throw error;
      return undefined;
    }
  });
}
