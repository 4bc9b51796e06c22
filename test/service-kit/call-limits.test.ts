import { gzipSync } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import {
  Code,
  type ConnectError,
  createClient,
  createContextValues,
  type Interceptor,
  type UnaryRequest,
} from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { DEFAULT_DEADLINE_MS, limitCalls, MAX_UNARY_MS } from "@runtime-cloud/service-kit/call-limits";
import { createGrpcJsTransport, type GrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { AskRequestSchema, ProbeService } from "./probe_pb.ts";
import { PROCESS_TIMEOUT_MS, startProbeProcess } from "./probe-process.ts";
import { type Probe, refusalOf, startProbe } from "./probe-server.ts";

let probe: Probe;
let transport: GrpcJsTransport;
const signals: AbortSignal[] = [];

beforeAll(async () => {
  probe = await startProbe({
    graceMs: 500,
    handlers: {
      ask: ({ question }, { signal }) => {
        if (question !== "never") return { answer: question.slice(0, 20) };
        signals.push(signal);
        return new Promise(() => undefined);
      },
    },
  });
  transport = createGrpcJsTransport({ address: `127.0.0.1:${probe.server.port}`, token: () => probe.token });
});

afterAll(async () => {
  transport.close();
  await probe.server.drain();
});

function post(
  body: string | Uint8Array,
  headers: Record<string, string> = {},
  url = probe.server.url,
): Promise<Response> {
  return fetch(`${url}/probe.v1.ProbeService/Ask`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${probe.token}`,
      connection: "close",
      ...headers,
    },
    body,
  });
}

const fiveMebibytes = "x".repeat(5 * 1_024 * 1_024);

describe("a server", () => {
  test("doesn't decode Brotli, and says what it takes", async () => {
    const response = await post(JSON.stringify({ question: "why" }), { "content-encoding": "br" });
    expect(response.status).toBe(501);
    expect(await response.json()).toMatchObject({ code: "unimplemented", message: expect.stringContaining("gzip") });
  });

  test("decodes gzip", async () => {
    const response = await post(gzipSync(JSON.stringify({ question: "why" })), { "content-encoding": "gzip" });
    expect(await response.json()).toMatchObject({ answer: "why" });
  });

  test("refuses a message over 4 MiB, by gRPC too", async () => {
    const h2 = createConnectTransport({ baseUrl: probe.server.url, httpVersion: "2", acceptCompression: [] });
    const headers = { authorization: `Bearer ${probe.token}` };
    const refused = await refusalOf(createClient(ProbeService, h2).ask({ question: fiveMebibytes }, { headers }));
    expect(refused.code).toBe(Code.ResourceExhausted);
  });

  // In a process of its own: under Jest a zlib error isn't an `Error`, and Connect reads its code only then.
  test(
    "refuses a small body that unpacks to more than 4 MiB",
    async () => {
      const bomb = gzipSync(JSON.stringify({ question: fiveMebibytes }));
      expect(bomb.length).toBeLessThan(20_000);
      const alone = await startProbeProcess();
      const response = await post(
        bomb,
        { "content-encoding": "gzip", authorization: `Bearer ${alone.token}` },
        alone.url,
      );
      expect(await response.json()).toMatchObject({ code: "resource_exhausted" });
      expect(await alone.stop("SIGTERM")).toBe(0);
    },
    PROCESS_TIMEOUT_MS,
  );

  test("refuses unknown JSON fields instead of ignoring a misspelling", async () => {
    const response = await post(JSON.stringify({ question: "why", qestion: "typo" }));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("qestion"),
    });
  });

  test("ends a call at its client's deadline and aborts the handler's signal", async () => {
    const client = createClient(ProbeService, transport);
    await client.ask({ question: "connects" });
    const refused = await refusalOf(client.ask({ question: "never" }, { timeoutMs: 500 }));
    expect(refused.code).toBe(Code.DeadlineExceeded);
    const [signal] = signals;
    if (!signal) throw new Error("the handler was not reached");
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    expect(signal.aborted).toBe(true);
  });
});

describe("without a client that gives up", () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  test.each([
    ["no deadline", {}, DEFAULT_DEADLINE_MS],
    ["a deadline beyond the limit", { "grpc-timeout": "24H" }, MAX_UNARY_MS],
  ])("a unary call with %s ends in bounded time though its handler doesn't listen", async (_name, header, limit) => {
    jest.useFakeTimers();
    const outcome = refusalOf(callForever(limitCalls(new AbortController().signal), header));
    let refused: ConnectError | undefined;
    void outcome.then((error) => (refused = error));
    await jest.advanceTimersByTimeAsync(limit - 1);
    expect(refused).toBeUndefined();
    await jest.advanceTimersByTimeAsync(1);
    expect(refused?.code).toBe(Code.DeadlineExceeded);
  });
});

function callForever(interceptor: Interceptor, header: Record<string, string>) {
  const request: UnaryRequest<typeof AskRequestSchema> = {
    stream: false,
    service: ProbeService,
    method: ProbeService.method.ask,
    requestMethod: "POST",
    url: "http://localhost/",
    signal: new AbortController().signal,
    header: new Headers(header),
    contextValues: createContextValues(),
    message: create(AskRequestSchema),
  };
  return interceptor(() => new Promise(() => undefined))(request);
}
