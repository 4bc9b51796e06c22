import { once } from "node:events";
import net from "node:net";
import { Code, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "@runtime-cloud/contracts/grpc/health/v1/health_pb";
import { expect, test } from "@jest/globals";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { ProbeService } from "./probe_pb.ts";
import { type Probe, refusalOf, startProbe } from "./probe-server.ts";

/** A call that begins, and ends when the test says so. */
function gate() {
  let enter = () => {};
  let leave = () => {};
  const entered = new Promise<void>((resolve) => (enter = resolve));
  const left = new Promise<void>((resolve) => (leave = resolve));
  return { enter: () => enter(), entered, leave: () => leave(), left };
}

function clientOf(probe: Probe) {
  const transport = createGrpcJsTransport({ address: `127.0.0.1:${probe.server.port}`, token: () => probe.token });
  return { client: createClient(ProbeService, transport), health: createClient(Health, transport), transport };
}

test("a unary call under way when the drain begins is answered, by gRPC and by Connect", async () => {
  const calls = [gate(), gate()];
  const probe = await startProbe({
    handlers: {
      async ask({ question }) {
        const call = calls[Number(question)];
        call?.enter();
        await call?.left;
        return { answer: `done ${question}` };
      },
    },
  });
  const { client, transport } = clientOf(probe);
  const h1 = createConnectTransport({ baseUrl: probe.server.url, httpVersion: "1.1", acceptCompression: [] });
  const headers = { authorization: `Bearer ${probe.token}` };
  const answers = [client.ask({ question: "0" }), createClient(ProbeService, h1).ask({ question: "1" }, { headers })];
  await Promise.all(calls.map(({ entered }) => entered));
  const drained = probe.server.drain();
  for (const call of calls) call.leave();
  expect((await Promise.all(answers)).map(({ answer }) => answer)).toEqual(["done 0", "done 1"]);
  await drained;
  transport.close();
});

test("streams end UNAVAILABLE: those that return on abort, those that throw and those that don't listen", async () => {
  const modes = ["returns", "throws", "ignores"] as const;
  const probe = await startProbe({
    handlers: {
      async *watch({ messages }, { signal }) {
        const mode = modes[messages];
        yield { number: messages };
        if (mode === "ignores") await new Promise(() => undefined);
        if (!signal.aborted) await once(signal, "abort");
        if (mode === "throws") throw new Error("stopped in the middle");
      },
    },
  });
  const { client, transport } = clientOf(probe);
  const streams = modes.map((_mode, messages) => client.watch({ messages })[Symbol.asyncIterator]());
  for (const stream of streams) expect((await stream.next()).done).toBe(false);
  const ends = streams.map((stream) => refusalOf(stream.next()));
  await probe.server.drain();
  for (const end of await Promise.all(ends)) expect(end).toMatchObject({ code: Code.Unavailable });
  expect(probe.log.filter(({ level }) => level === "error")).toEqual([]);
  transport.close();
});

test("health says NOT_SERVING to its watchers before the connection goes", async () => {
  const probe = await startProbe();
  const { health, transport } = clientOf(probe);
  const watch = health.watch({ service: ProbeService.typeName })[Symbol.asyncIterator]();
  expect((await watch.next()).value).toMatchObject({ status: ServingStatus.SERVING });
  const drained = probe.server.drain();
  expect((await watch.next()).value).toMatchObject({ status: ServingStatus.NOT_SERVING });
  expect(await refusalOf(watch.next())).toMatchObject({ code: Code.Unavailable });
  await drained;
  transport.close();
});

test("a call that outlives the grace is ended UNAVAILABLE, and the drain returns", async () => {
  const call = gate();
  const probe = await startProbe({
    graceMs: 100,
    handlers: {
      ask() {
        call.enter();
        return new Promise(() => undefined);
      },
    },
  });
  const transport = createConnectTransport({ baseUrl: probe.server.url, httpVersion: "2", acceptCompression: [] });
  const headers = { authorization: `Bearer ${probe.token}` };
  const refused = refusalOf(createClient(ProbeService, transport).ask({ question: "forever" }, { headers }));
  await call.entered;
  await probe.server.drain();
  expect(await refused).toMatchObject({ code: Code.Unavailable });
});

test("idle connections don't hold the drain, new ones are refused, a second drain waits for the first", async () => {
  const probe = await startProbe({ graceMs: 60_000 });
  const { client, transport } = clientOf(probe);
  await client.ask({ question: "first" });
  const idle = net.connect(probe.server.port, "127.0.0.1");
  await once(idle, "connect");
  const closed = once(idle, "close");
  idle.on("error", () => undefined);
  await Promise.all([probe.server.drain(), probe.server.drain()]);
  await closed;
  const late = net.connect(probe.server.port, "127.0.0.1");
  expect(await once(late, "error")).toMatchObject([{ code: "ECONNREFUSED" }]);
  transport.close();
});
