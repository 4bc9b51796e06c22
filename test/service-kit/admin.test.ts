import http from "node:http";
import { text } from "node:stream/consumers";
import { Code, createClient } from "@connectrpc/connect";
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "@runtime-cloud/contracts/grpc/health/v1/health_pb";
import { afterEach, describe, expect, test } from "@jest/globals";
import { type Admin, adminScope, startAdmin } from "@runtime-cloud/service-kit/admin";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { createHealth } from "@runtime-cloud/service-kit/health";
import { createLocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { createMetrics } from "@runtime-cloud/service-kit/metrics";
import { refusalOf, startProbe } from "./probe-server.ts";

const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A clock that each look moves past any cached answer. */
function leapingClock() {
  let seconds = 0;
  return { now: () => new Date((seconds += 10) * 1_000) };
}

async function startAt(host: string, verifier?: Awaited<ReturnType<typeof createLocalIssuer>>["verifier"]) {
  let databaseUp = true;
  const probes = { database: () => (databaseUp ? Promise.resolve() : Promise.reject(new Error("down"))) };
  const health = createHealth({ services: ["a.B"], probes, clock: leapingClock() });
  const metrics = createMetrics({ service: "probe" });
  const logger = silentLogger();
  const admin = await startAdmin({ host, port: 0, health, metrics, logger, ...(verifier && { verifier }) });
  closing.push(() => admin.close());
  return { admin, health, metrics, setDatabase: (up: boolean) => void (databaseUp = up) };
}

async function get(admin: Admin, path: string, headers: Record<string, string> = {}, method = "GET") {
  const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
    const options = { host: "127.0.0.1", port: admin.port, path, method, headers, agent: false };
    http.request(options, resolve).on("error", reject).end();
  });
  return { status: response.statusCode, body: await text(response) };
}

describe("on loopback", () => {
  test("/readyz names the probe that fails, and says so again once it passes or the server drains", async () => {
    const { admin, health, setDatabase } = await startAt("127.0.0.1");
    expect(await get(admin, "/readyz")).toEqual({ status: 200, body: "ready\n" });
    setDatabase(false);
    expect(await get(admin, "/readyz")).toEqual({ status: 503, body: "not ready: database\n" });
    expect(await get(admin, "/healthz")).toEqual({ status: 200, body: "ok\n" });
    setDatabase(true);
    expect((await get(admin, "/readyz")).status).toBe(200);
    health.drain();
    expect(await get(admin, "/readyz")).toEqual({ status: 503, body: "not ready: draining\n" });
  });

  test("/metrics holds the calls by method and code, and the event loop", async () => {
    const { admin, metrics } = await startAt("127.0.0.1");
    const probe = await startProbe({ graceMs: 100, interceptors: [metrics.interceptor] });
    const transport = createGrpcJsTransport({ address: `127.0.0.1:${probe.server.port}` });
    await createClient(Health, transport).check({});
    await refusalOf(createClient(Health, transport).check({ service: "no.Such" }));
    transport.close();
    await probe.server.drain();
    const { body } = await get(admin, "/metrics");
    expect(body).toMatch(/rpc_server_calls_total\{service="grpc.health.v1.Health",method="Check",code="ok",.*\} 1/);
    expect(body).toMatch(/rpc_server_calls_total\{.*method="Check",code="not_found",.*\} 1/);
    expect(body).toMatch(/nodejs_eventloop_lag_p99_seconds/);
  });

  test("serves what is mounted, and only under its path", async () => {
    const { admin } = await startAt("127.0.0.1");
    admin.mount("/queues/", (request, response) => response.end(`board ${request.url}`));
    expect((await get(admin, "/queues/api?x=1")).body).toBe("board /queues/api?x=1");
    expect((await get(admin, "/queues")).body).toBe("board /queues");
    expect((await get(admin, "/queuesque")).status).toBe(404);
  });

  test("a browser can't be turned against it: foreign names and foreign pages' writes are refused", async () => {
    const { admin } = await startAt("127.0.0.1");
    admin.mount("/queues", (_request, response) => response.end("board"));
    expect((await get(admin, "/queues", { host: "evil.example" })).status).toBe(403);
    expect((await get(admin, "/queues", { origin: "https://evil.example" }, "POST")).status).toBe(403);
    const own = { origin: `http://127.0.0.1:${admin.port}`, host: `127.0.0.1:${admin.port}` };
    expect((await get(admin, "/queues", own, "POST")).status).toBe(200);
  });
});

describe("beyond loopback", () => {
  test("it doesn't listen without a verifier", async () => {
    await expect(startAt("0.0.0.0")).rejects.toThrow(/needs a verifier/);
  });

  test("only the health checks answer without a token that holds the scope", async () => {
    const issuer = await createLocalIssuer();
    const { admin } = await startAt("0.0.0.0", issuer.verifier);
    const bearer = async (scopes: string[]) => ({
      authorization: `Bearer ${await issuer.issue({ subject: "op", tenant: "acme", scopes })}`,
    });
    expect((await get(admin, "/healthz")).status).toBe(200);
    expect((await get(admin, "/readyz")).status).toBe(200);
    expect((await get(admin, "/metrics")).status).toBe(401);
    const weak = await get(admin, "/metrics", await bearer(["probe:ask"]));
    expect(weak).toMatchObject({ status: 403, body: expect.stringContaining(`needs the scope "${adminScope}"`) });
    expect((await get(admin, "/metrics", await bearer([adminScope]))).status).toBe(200);
  });
});

describe("grpc.health.v1", () => {
  test("answers for the server and each service, follows the probes, and knows no others", async () => {
    let up = true;
    const probes = { database: () => (up ? Promise.resolve() : Promise.reject(new Error("down"))) };
    const health = createHealth({ services: ["probe.v1.ProbeService"], probes, clock: leapingClock() });
    const probe = await startProbe({ graceMs: 100, health });
    const transport = createGrpcJsTransport({ address: `127.0.0.1:${probe.server.port}` });
    closing.push(() => probe.server.drain());
    const client = createClient(Health, transport);
    for (const service of ["", "probe.v1.ProbeService"]) {
      expect(await client.check({ service })).toMatchObject({ status: ServingStatus.SERVING });
    }
    expect((await refusalOf(client.check({ service: "no.Such" }))).code).toBe(Code.NotFound);
    const watch = client.watch({ service: "" })[Symbol.asyncIterator]();
    const unknown = client.watch({ service: "no.Such" })[Symbol.asyncIterator]();
    expect((await watch.next()).value).toMatchObject({ status: ServingStatus.SERVING });
    expect((await unknown.next()).value).toMatchObject({ status: ServingStatus.SERVICE_UNKNOWN });
    up = false;
    expect((await watch.next()).value).toMatchObject({ status: ServingStatus.NOT_SERVING });
    transport.close();
  });
});
