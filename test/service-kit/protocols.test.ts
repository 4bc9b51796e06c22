import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { BadRequestSchema } from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { ProbeService } from "./probe_pb.ts";
import { collect, type Probe, startProbe } from "./probe-server.ts";

let probe: Probe;

beforeAll(async () => {
  probe = await startProbe({ graceMs: 500 });
});

afterAll(() => probe.server.drain());

describe("one cleartext port", () => {
  const gzipOnly = { acceptCompression: [] };
  const transports: [string, (url: string) => Transport][] = [
    ["Connect over HTTP/1.1", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1", ...gzipOnly })],
    ["Connect over HTTP/2", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", ...gzipOnly })],
    ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl, ...gzipOnly })],
    ["gRPC-Web over HTTP/1.1", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1", ...gzipOnly })],
  ];

  test.each(transports)("answers unary calls and streams by %s", async (_name, transportTo) => {
    const client = createClient(ProbeService, transportTo(probe.server.url));
    const headers = { authorization: `Bearer ${probe.token}` };
    expect(await client.ask({ question: "why" }, { headers })).toMatchObject({ answer: "you asked why" });
    const watched = await collect(client.watch({ messages: 3 }, { headers }));
    expect(watched.map(({ number }) => number)).toEqual([1, 2, 3]);
  });

  test("answers a plain JSON POST, as curl sends it", async () => {
    const response = await fetch(`${probe.server.url}/probe.v1.ProbeService/Ask`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${probe.token}`, connection: "close" },
      body: JSON.stringify({ question: "why" }),
    });
    expect(await response.json()).toEqual({ answer: "you asked why", subject: "alice", tenantId: "acme" });
  });

  test("says in JSON what an error detail inside an answer is", async () => {
    const detail = create(BadRequestSchema, {
      fieldViolations: [{ field: "units", description: "must be 1 or more" }],
    });
    const problem = anyPack(BadRequestSchema, detail);
    const other = await startProbe({ graceMs: 500, handlers: { ask: () => ({ problem }) } });
    const response = await fetch(`${other.server.url}/probe.v1.ProbeService/Ask`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${other.token}`, connection: "close" },
      body: JSON.stringify({ question: "why" }),
    });
    expect(await response.json()).toEqual({
      problem: {
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        fieldViolations: [{ field: "units", description: "must be 1 or more" }],
      },
    });
    await other.server.drain();
  });

  test("answers 400 to a connection that starts like neither protocol", async () => {
    const socket = net.connect(probe.server.port, "127.0.0.1");
    await once(socket, "connect");
    socket.write("PRETEND / HTTP/1.1\r\n\r\n");
    expect(String(await once(socket, "data"))).toMatch(/^HTTP\/1\.1 400/);
    socket.destroy();
  });

  test("knows HTTP/2 by a preface that arrives byte by byte", async () => {
    const socket = net.connect({ port: probe.server.port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    const answered = once(socket, "data");
    for (const byte of Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), emptySettings])) {
      await new Promise((resolve) => socket.write(Buffer.of(byte), resolve));
    }
    expect(await answered).toMatchObject([{ 3: SETTINGS_FRAME }]);
    socket.destroy();
  });
});

describe("with a certificate", () => {
  test("the protocol is agreed by ALPN, and a client without the wanted certificate is turned away", async () => {
    const folder = await mkdtemp(join(tmpdir(), "service-kit-tls-"));
    const { cert, key } = await selfSigned(folder);
    const secure = await startProbe({ graceMs: 500, tls: { cert, key, ca: cert } });
    const address = `localhost:${secure.server.port}`;
    const known = createGrpcJsTransport({ address, token: () => secure.token, tls: { ca: cert, cert, key } });
    const unknown = createGrpcJsTransport({ address, token: () => secure.token, tls: { ca: cert } });
    const h1 = createConnectTransport({
      baseUrl: `https://${address}`,
      httpVersion: "1.1",
      nodeOptions: { ca: cert, cert, key },
      acceptCompression: [],
    });
    try {
      expect(secure.server.url).toMatch(/^https:/);
      const asked = await createClient(ProbeService, known).ask({ question: "h2" });
      expect(asked.answer).toBe("you asked h2");
      const headers = { authorization: `Bearer ${secure.token}` };
      const overH1 = await createClient(ProbeService, h1).ask({ question: "h1" }, { headers });
      expect(overH1.answer).toBe("you asked h1");
      const refused = createClient(ProbeService, unknown).ask({ question: "?" }, { timeoutMs: 2_000 });
      await expect(refused).rejects.toThrow();
    } finally {
      known.close();
      unknown.close();
      await secure.server.drain();
      await rm(folder, { recursive: true });
    }
  });
});

const SETTINGS_FRAME = 4;
const emptySettings = Buffer.from([0, 0, 0, SETTINGS_FRAME, 0, 0, 0, 0, 0]);

async function selfSigned(folder: string): Promise<{ cert: string; key: string }> {
  const key = join(folder, "key.pem");
  const cert = join(folder, "cert.pem");
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  await promisify(execFile)("openssl", [
    "req",
    "-x509",
    ...curve,
    "-keyout",
    key,
    "-out",
    cert,
    "-days",
    "2",
    ...subject,
  ]);
  return { cert: await readFile(cert, "utf8"), key: await readFile(key, "utf8") };
}
