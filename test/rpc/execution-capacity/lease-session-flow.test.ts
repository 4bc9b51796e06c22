import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { LeaseState } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { routes } from "@runtime-cloud/execution-capacity/routes";
import { until } from "@runtime-cloud/local-servers/until";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { standardInterceptors } from "@runtime-cloud/service-kit/interceptors";
import { createLocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import { serve } from "@runtime-cloud/service-kit/serve";
import {
  attempt,
  type CapacityClient,
  type CapacityService,
  startCapacity,
  staticPool,
} from "../../_support/execution-capacity.ts";
import { acquire, leaseOf } from "./lease-calls.ts";
import { openSession } from "./open-session.ts";

/** Far more than a session reads before its results are taken. */
const MANY = 4_000;
/** Looks without a change after which nothing moves any more. */
const STILL_LOOKS = 20;

let service: CapacityService;
let tenantId: string;
let tenant: CapacityClient;

beforeAll(async () => {
  service = await startCapacity();
});
afterAll(() => service.close());
beforeEach(() => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = service.as(tenantId);
});
afterEach(async () => {
  expect(await service.differences()).toEqual([]);
});

/** Resolves once the tenant holds this many. */
const activeLeases = (count: number) =>
  until(`${count} leases are ACTIVE`, 10_000, async () => {
    const active = await service.database.capacityLease.count({ where: { tenantId, state: "ACTIVE" } });
    return active === count || undefined;
  });

test("a caller that reads nothing isn't read either, and loses nothing", async () => {
  await tenant.setWorkerPool(staticPool("build", 10_000));
  const session = openSession(tenant);
  const [first] = await Promise.all([session.next(1), Promise.resolve(session.send(acquire(attempt("build"))))]);
  for (let sent = 0; sent < MANY; sent += 1) session.send(acquire(attempt("build")));
  const counted = () => service.database.capacityLease.count({ where: { tenantId } });
  let last = 0;
  let looks = 0;
  await until("it stops reading", 20_000, async () => {
    const now = await counted();
    looks = now === last ? looks + 1 : 0;
    last = now;
    return looks === STILL_LOOKS || undefined;
  });
  expect(last).toBeLessThan(MANY / 2);
  session.close();
  const results = await session.rest();
  expect(first).toHaveLength(1);
  expect(results).toHaveLength(MANY);
  expect(new Set(results.map(({ sequence }) => sequence)).size).toBe(MANY);
  expect(results.every(({ result }) => leaseOf(result)?.state === LeaseState.ACTIVE)).toBe(true);
});

/** The service behind a port, called by gRPC. */
async function listening() {
  const logger = silentLogger();
  const issuer = await createLocalIssuer();
  const server = await serve({
    host: "127.0.0.1",
    port: 0,
    services: [ExecutionCapacityService.typeName],
    routes: routes(service.context, service.desk),
    interceptors: standardInterceptors({ logger, verifier: issuer.verifier }),
    logger,
    graceMs: 3_000,
  });
  const token = await issuer.issue({ subject: "a dispatcher", tenant: tenantId, scopes: allScopes });
  const transport = createGrpcJsTransport({ address: `127.0.0.1:${server.port}`, token: () => token });
  return { server, transport, client: createClient(ExecutionCapacityService, transport) };
}

test("a cancelled session leaves what it had asked for as it was committed", async () => {
  await tenant.setWorkerPool(staticPool("build", 100));
  const { server, transport, client } = await listening();
  try {
    const session = openSession(client);
    session.send(acquire(attempt("build")));
    await session.next(1);
    session.send(acquire(attempt("build")));
    const ended = session.rest().catch(ConnectError.from);
    await activeLeases(2);
    session.cancel();
    await ended;
    const next = openSession(client);
    next.send(acquire(attempt("build")));
    next.close();
    expect(await next.rest()).toHaveLength(1);
  } finally {
    transport.close();
    await server.drain();
  }
});

test("a draining server answers what it has read, then ends the session UNAVAILABLE", async () => {
  await tenant.setWorkerPool(staticPool("build", 1_000));
  const { server, transport, client } = await listening();
  try {
    const session = openSession(client);
    session.send(acquire(attempt("build")));
    await session.next(1);
    const sent = Array.from({ length: 100 }, () => session.send(acquire(attempt("build"))));
    const results = await session.next(sent.length);
    const end = session.rest().then(() => undefined, ConnectError.from);
    await server.drain();
    expect(results.map(({ result }) => leaseOf(result)?.state)).toEqual(sent.map(() => LeaseState.ACTIVE));
    expect(await end).toMatchObject({ code: Code.Unavailable });
  } finally {
    transport.close();
  }
});
