import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createGrpcJsTransport, type GrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { freePort } from "@runtime-cloud/local-servers/ports";
import { ProbeService } from "./probe_pb.ts";
import { collect, type Probe, refusalOf, startProbe } from "./probe-server.ts";

let probe: Probe;
let transport: GrpcJsTransport;
let asked = 0;

beforeAll(async () => {
  probe = await startProbe({
    graceMs: 500,
    handlers: {
      ask({ question }, { requestHeader, responseHeader, responseTrailer, timeoutMs }) {
        asked += 1;
        if (question === "third time lucky" && asked < 3) throw new ConnectError("not yet", Code.Unavailable);
        if (question === "permanent") throw new ConnectError("a: b/c, 100% & é", Code.FailedPrecondition);
        responseHeader.set("x-echo", requestHeader.get("x-sent") ?? "");
        responseTrailer.set("x-trailer", "end");
        return { answer: `${timeoutMs() === undefined ? "without" : "with"} deadline` };
      },
      async *watch({ messages }, { signal }) {
        for (let number = 1; number <= messages; number += 1) yield { number };
        if (messages > 0) return;
        asked += 1;
        throw signal.aborted ? signal.reason : new ConnectError("nothing to watch", Code.Unavailable);
      },
    },
  });
  transport = createGrpcJsTransport({ address: `127.0.0.1:${probe.server.port}`, token: () => probe.token });
});

afterAll(async () => {
  transport.close();
  await probe.server.drain();
});

const client = () => createClient(ProbeService, transport);

describe("a client over grpc-js", () => {
  test("sends headers and a default deadline, and gets headers and trailers", async () => {
    let echo: string | null = null;
    let trailer: string | null = null;
    const { answer } = await client().ask(
      { question: "why" },
      {
        headers: { "x-sent": "over" },
        onHeader: (headers) => (echo = headers.get("x-echo")),
        onTrailer: (trailers) => (trailer = trailers.get("x-trailer")),
      },
    );
    expect({ answer, echo, trailer }).toEqual({ answer: "with deadline", echo: "over", trailer: "end" });
  });

  test("reads a stream longer than any buffer, in order", async () => {
    const messages = await collect(client().watch({ messages: 5_000 }));
    expect(messages.map(({ number }) => number)).toEqual(Array.from({ length: 5_000 }, (_, index) => index + 1));
  });

  test("sends a stream and gets its one answer", async () => {
    async function* words() {
      for (let count = 0; count < 2_000; count += 1) yield { word: "a" };
    }
    const { sentence } = await client().collect(words());
    expect(sentence.split(" ")).toHaveLength(2_000);
  });

  test("talks both ways at once: each word is sent only after the answer to the last", async () => {
    let proceed = () => {};
    async function* words() {
      for (const word of ["one", "two", "three"]) {
        const answered = new Promise<void>((resolve) => (proceed = resolve));
        yield { word };
        await answered;
      }
    }
    const answers: string[] = [];
    for await (const { word } of client().chat(words())) {
      answers.push(word);
      proceed();
    }
    expect(answers).toEqual(["ONE", "TWO", "THREE"]);
  });

  test("leaves a stream by its signal", async () => {
    const leave = new AbortController();
    async function* silence() {
      yield { word: "hello" };
      await new Promise(() => undefined);
    }
    const chat = client().chat(silence(), { signal: leave.signal })[Symbol.asyncIterator]();
    expect((await chat.next()).value).toMatchObject({ word: "HELLO" });
    leave.abort();
    expect((await refusalOf(chat.next())).code).toBe(Code.Canceled);
  });

  test("keeps an error's text as it was sent", async () => {
    const refused = await refusalOf(client().ask({ question: "permanent" }));
    expect(refused).toMatchObject({ code: Code.FailedPrecondition, rawMessage: "a: b/c, 100% & é" });
  });

  test("runs its interceptors", async () => {
    const counted: string[] = [];
    const count: Interceptor = (next) => (request) => {
      counted.push(request.method.name);
      return next(request);
    };
    const address = `127.0.0.1:${probe.server.port}`;
    const observed = createGrpcJsTransport({ address, token: () => probe.token, interceptors: [count] });
    await createClient(ProbeService, observed).ask({ question: "why" });
    await collect(createClient(ProbeService, observed).watch({ messages: 1 }));
    observed.close();
    expect(counted).toEqual(["Ask", "Watch"]);
  });
});

describe("retries", () => {
  test("a unary call that ends UNAVAILABLE is tried again", async () => {
    asked = 0;
    await client().ask({ question: "third time lucky" });
    expect(asked).toBe(3);
  });

  test("no other code is tried again", async () => {
    asked = 0;
    await refusalOf(client().ask({ question: "permanent" }));
    expect(asked).toBe(1);
  });

  test("a stream is never tried again", async () => {
    asked = 0;
    expect((await refusalOf(collect(client().watch({ messages: 0 })))).code).toBe(Code.Unavailable);
    expect(asked).toBe(1);
  });
});

test("a server that isn't there is UNAVAILABLE, and the text names no address", async () => {
  const nobody = createGrpcJsTransport({ address: "127.0.0.1:1" });
  const refused = await refusalOf(createClient(ProbeService, nobody).ask({ question: "?" }, { timeoutMs: 10_000 }));
  nobody.close();
  expect(refused).toMatchObject({ code: Code.Unavailable, rawMessage: "the service can't be reached: try again" });
});

test("a server that was away long is found by the first call after its return", async () => {
  const port = await freePort();
  let token = "";
  const away = createGrpcJsTransport({ address: `127.0.0.1:${port}`, token: () => token });
  const asking = createClient(ProbeService, away);
  // Long enough for a backoff without bound to grow over what a call's tries last.
  const begun = performance.now();
  while (performance.now() - begun < 4_000) expect((await refusalOf(asking.ask({}))).code).toBe(Code.Unavailable);
  const late = await startProbe({ port });
  token = late.token;
  await asking.ask({ question: "at last" });
  away.close();
  await late.server.drain();
});
