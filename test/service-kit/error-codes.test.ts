import { Code, ConnectError, createClient } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  QuotaFailureSchema,
  RetryInfoSchema,
} from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import {
  AlreadyExists,
  Denied,
  Exhausted,
  IllegalTransition,
  InvalidInput,
  NotFound,
  OutOfRange,
  StaleRow,
  Unavailable,
} from "@runtime-cloud/service-kit/errors";
import { createGrpcJsTransport, type GrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { ProbeService } from "./probe_pb.ts";
import { collect, type Probe, refusalOf, startProbe } from "./probe-server.ts";

let probe: Probe;
let transport: GrpcJsTransport;
let thrown: unknown;

beforeAll(async () => {
  const handlers = {
    ask() {
      throw thrown;
    },
    async *watch() {
      yield { number: 1 };
      throw thrown;
    },
  };
  probe = await startProbe({ graceMs: 500, handlers });
  transport = createGrpcJsTransport({ address: `127.0.0.1:${probe.server.port}`, token: () => probe.token });
});

afterEach(() => {
  probe.log.length = 0;
});

afterAll(async () => {
  transport.close();
  await probe.server.drain();
});

function askRefused(error: unknown): Promise<ConnectError> {
  thrown = error;
  return refusalOf(createClient(ProbeService, transport).ask({ question: "why" }));
}

const errorLines = () => probe.log.filter(({ level }) => level === "error");

describe("a domain error leaves as its code with details, and isn't logged as an error", () => {
  test("NotFound", async () => {
    const refused = await askRefused(new NotFound("lease L1 does not exist"));
    expect(refused).toMatchObject({ code: Code.NotFound, rawMessage: "lease L1 does not exist" });
    expect(errorLines()).toEqual([]);
  });

  test("IllegalTransition, with state, event, reason and what is allowed", async () => {
    const refused = await askRefused(
      new IllegalTransition({
        aggregate: "ProvisioningRun",
        id: "R1",
        state: "APPLIED",
        event: "cancel",
        reason: "not-in-this-state",
        allowed: ["resolve", "retry"],
      }),
    );
    expect(refused.code).toBe(Code.FailedPrecondition);
    expect(refused.rawMessage).toBe(
      "ProvisioningRun R1 is APPLIED: cancel refused (not-in-this-state); allowed: resolve, retry",
    );
    const [info] = refused.findDetails(ErrorInfoSchema);
    expect(info).toMatchObject({
      domain: "runtime-cloud",
      reason: "NOT_IN_THIS_STATE",
      metadata: { aggregate: "ProvisioningRun", id: "R1", state: "APPLIED", event: "cancel", allowed: "resolve,retry" },
    });
    expect(errorLines()).toEqual([]);
  });

  test("IllegalTransition from a final state says that it is final, and nothing is allowed", async () => {
    const run = { aggregate: "ProvisioningRun", id: "R1", state: "APPLIED", event: "cancel" };
    const refused = await askRefused(new IllegalTransition({ ...run, reason: "not-in-this-state", allowed: [] }));
    expect(refused.code).toBe(Code.FailedPrecondition);
    expect(refused.rawMessage).toBe("ProvisioningRun R1 is APPLIED, which is final: cancel refused");
    expect(refused.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: "NOT_IN_THIS_STATE", metadata: { ...run, allowed: "" } },
    ]);
    const held = await askRefused(new IllegalTransition({ ...run, reason: "being-applied", allowed: [] }));
    expect(held.rawMessage).toBe("ProvisioningRun R1 is APPLIED: cancel refused (being-applied)");
  });

  test("InvalidInput, with its violations", async () => {
    const refused = await askRefused(new InvalidInput([{ field: "planDigest", description: "is another plan's" }]));
    expect(refused.code).toBe(Code.InvalidArgument);
    const [badRequest] = refused.findDetails(BadRequestSchema);
    expect(badRequest?.fieldViolations[0]).toMatchObject({ field: "planDigest", description: "is another plan's" });
  });

  test("AlreadyExists, with what is there", async () => {
    const refused = await askRefused(new AlreadyExists("web@1.0.0 was published with other content"));
    expect(refused).toMatchObject({
      code: Code.AlreadyExists,
      rawMessage: "web@1.0.0 was published with other content",
    });
    expect(refused.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: "ALREADY_EXISTS" }]);
    expect(errorLines()).toEqual([]);
  });

  test("OutOfRange, with where something is", async () => {
    const refused = await askRefused(new OutOfRange("the log starts at 7", { oldestSequence: "7" }));
    expect(refused).toMatchObject({ code: Code.OutOfRange, rawMessage: "the log starts at 7" });
    expect(refused.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: "OUT_OF_RANGE", metadata: { oldestSequence: "7" } },
    ]);
    expect(errorLines()).toEqual([]);
  });

  test("Exhausted, with whose limit and when to try again", async () => {
    const limit = { subject: "tenant:acme", description: "10 of 10 runs are in use", retryAfterMs: 1_500 };
    const refused = await askRefused(new Exhausted(limit));
    expect(refused.code).toBe(Code.ResourceExhausted);
    expect(refused.findDetails(QuotaFailureSchema)[0]?.violations[0]?.subject).toBe("tenant:acme");
    expect(refused.findDetails(RetryInfoSchema)[0]?.retryDelay).toMatchObject({ seconds: 1n, nanos: 500_000_000 });
  });

  test.each([
    [new StaleRow("run R1 changed meanwhile"), Code.Aborted],
    [new Denied("not yours"), Code.PermissionDenied],
    [new ConnectError("not here", Code.Unimplemented), Code.Unimplemented],
  ])("%s", async (error, code) => {
    expect((await askRefused(error)).code).toBe(code);
    expect(errorLines()).toEqual([]);
  });

  test("Unavailable, which is worth a warning", async () => {
    const refused = await askRefused(new Unavailable("the queue can't be reached"));
    expect(refused.code).toBe(Code.Unavailable);
    expect(probe.log.some(({ level }) => level === "warn")).toBe(true);
  });
});

describe("what nobody foresaw stays inside", () => {
  const leaks = /select|users|postgres|\/srv|hunter2|at Object|prisma/i;
  const secret = "SELECT * FROM users; /srv/app/db.ts; postgres://app:hunter2@db/app";

  test.each([
    ["an error", new Error(secret)],
    ["a ConnectError of code INTERNAL", new ConnectError(secret, Code.Internal)],
    ["something that is no error", secret],
    ["an unexpected unique violation", Object.assign(new Error(secret), { code: "P2002" })],
  ])("%s becomes `internal error`, its text is in the log only", async (_name, error) => {
    const refused = await askRefused(error);
    expect(refused).toMatchObject({ code: Code.Internal, rawMessage: "internal error" });
    expect(refused.findDetails(ErrorInfoSchema)).toEqual([]);
    const [line] = errorLines();
    expect(line).toMatchObject({ msg: "call failed", method: "probe.v1.ProbeService/Ask" });
    expect(JSON.stringify(line)).toContain("SELECT * FROM users");
    expect(JSON.stringify(line)).not.toContain("hunter2");
  });

  test("in the middle of a stream too", async () => {
    thrown = new Error(secret);
    const refused = await refusalOf(collect(createClient(ProbeService, transport).watch({})));
    expect(refused).toMatchObject({ code: Code.Internal, rawMessage: "internal error" });
    expect(errorLines()).toHaveLength(1);
  });

  test.each([
    ["a lost race", Object.assign(new Error(secret), { code: "P2034" }), Code.Aborted, []],
    ["a database that is away", Object.assign(new Error(secret), { code: "ECONNREFUSED" }), Code.Unavailable, ["warn"]],
    ["a commit of unknown outcome", new Error("Connection terminated unexpectedly"), Code.Unavailable, ["warn"]],
  ])("%s is a code of its own with neutral text", async (_name, error, code, levels) => {
    const refused = await askRefused(error);
    expect(refused.code).toBe(code);
    expect(refused.rawMessage).not.toMatch(leaks);
    // A unary call that ends UNAVAILABLE is tried again by its client.
    expect([...new Set(probe.log.map(({ level }) => level))]).toEqual(levels);
  });
});
