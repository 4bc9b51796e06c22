import { Code, createClient } from "@connectrpc/connect";
import { BadRequestSchema } from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createGrpcJsTransport, type GrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { ProbeService } from "./probe_pb.ts";
import { collect, type Probe, refusalOf, startProbe } from "./probe-server.ts";

let probe: Probe;
let transport: GrpcJsTransport;

beforeAll(async () => {
  probe = await startProbe({ graceMs: 500 });
  transport = createGrpcJsTransport({ address: `127.0.0.1:${probe.server.port}`, token: () => probe.token });
});

afterAll(async () => {
  transport.close();
  await probe.server.drain();
});

test("INVALID_ARGUMENT names every field that is wrong, by its JSON path, in the text and in BadRequest", async () => {
  const ask = createClient(ProbeService, transport).ask({
    question: "",
    lineItems: [{ holderId: "0198f7a0-0000-7000-8000-000000000000" }, { holderId: "not-a-uuid" }],
    labels: { team: "much too long" },
  });
  const refused = await refusalOf(ask);
  expect(refused.code).toBe(Code.InvalidArgument);
  const [badRequest] = refused.findDetails(BadRequestSchema);
  const violations = new Map(badRequest?.fieldViolations.map(({ field, description }) => [field, description]));
  expect([...violations.keys()].sort()).toEqual(['labels["team"]', "lineItems[1].holderId", "question"]);
  expect(violations.get("question")).toMatch(/at least 1 character/);
  expect(violations.get("lineItems[1].holderId")).toMatch(/UUID/);
  expect(refused.rawMessage).toContain("lineItems[1].holderId: ");
});

test("an invalid message inside a stream ends it, after the valid ones were answered", async () => {
  async function* words() {
    yield { word: "fine" };
    yield { word: "" };
  }
  const answers: string[] = [];
  const chat = createClient(ProbeService, transport).chat(words());
  const refused = await refusalOf(
    (async () => {
      for await (const { word } of chat) answers.push(word);
    })(),
  );
  expect(answers).toEqual(["FINE"]);
  expect(refused.code).toBe(Code.InvalidArgument);
  expect(refused.rawMessage).toMatch(/^word: /);
});

const NUL = "a\0b";

test("INVALID_ARGUMENT names every string that can't be stored, wherever it is", async () => {
  const ask = createClient(ProbeService, transport).ask({
    question: NUL,
    lineItems: [{ holderId: "0198f7a0-0000-7000-8000-000000000000" }, { holderId: NUL }],
    labels: { team: NUL, [NUL]: "ok" },
    parameters: { fine: ["yes", 1, null, { deep: NUL }], [NUL]: true },
  });
  const refused = await refusalOf(ask);
  expect(refused.code).toBe(Code.InvalidArgument);
  const [badRequest] = refused.findDetails(BadRequestSchema);
  const unstorable = badRequest?.fieldViolations.filter(({ description }) => description.includes("NUL character"));
  expect(unstorable?.map(({ field }) => field).sort()).toEqual([
    String.raw`labels["a\u0000b"]`,
    'labels["team"]',
    "lineItems[1].holderId",
    String.raw`parameters["a\u0000b"]`,
    'parameters["fine"][3]["deep"]',
    "question",
  ]);
});

test("half of a surrogate pair, which only JSON can carry, is refused too", async () => {
  const response = await fetch(`${probe.server.url}/${ProbeService.typeName}/Ask`, {
    method: "POST",
    headers: { authorization: `Bearer ${probe.token}`, "content-type": "application/json" },
    body: String.raw`{"question": "whole: \ud83d\ude00", "parameters": {"mood": "\ud83d"}}`,
  });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    code: "invalid_argument",
    message: 'parameters["mood"]: holds half of a surrogate pair, which is no character',
  });
});

test("a NUL character inside a stream ends it", async () => {
  async function* words() {
    yield { word: "fine" };
    yield { word: NUL };
  }
  const refused = await refusalOf(collect(createClient(ProbeService, transport).chat(words())));
  expect(refused.code).toBe(Code.InvalidArgument);
  expect(refused.findDetails(BadRequestSchema)[0]?.fieldViolations).toMatchObject([{ field: "word" }]);
});

test("who may not call isn't told what is wrong with the fields", async () => {
  const stranger = createGrpcJsTransport({ address: `127.0.0.1:${probe.server.port}` });
  const client = createClient(ProbeService, stranger);
  expect((await refusalOf(client.ask({ question: "" }))).code).toBe(Code.Unauthenticated);
  expect((await refusalOf(collect(client.watch({})))).code).toBe(Code.Unauthenticated);
  stranger.close();
});
