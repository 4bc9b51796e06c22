import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import type { LogLine } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/run_streams_pb";
import type { Engine } from "@runtime-cloud/iac-provisioning/engines/engine";
import type { EngineEvent } from "@runtime-cloud/iac-provisioning/engines/engine-event";
import type { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  declare,
  type IacService,
  plan,
  type ProvisioningClient,
  startIacProvisioning,
  webService,
} from "../../_support/iac-provisioning.ts";
import { type Listening, listening, reading } from "./listening.ts";
import { talkingEngine } from "./talking-engine.ts";

let service: IacService;
let server: Listening;
let manifests: Engine;
let tenantId: string;
let tenant: ProvisioningClient;

beforeAll(async () => {
  service = await startIacProvisioning();
  server = await listening(service);
  ({ manifests } = service.context.engines);
});
afterAll(async () => {
  await server.close();
  await service.close();
});
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = (await server.connect(tenantId)).client;
});
afterEach(() => {
  service.context.engines = { ...service.context.engines, manifests };
});

async function planned(of: keyof typeof EnvironmentClass = "STAGING"): Promise<string> {
  return plan(tenant, await declare(tenant, webService(await service.environment(tenantId, of))));
}

/** A run that an executor works on, and whose engine says what the test has it say. */
async function talkingRun() {
  const runId = await planned();
  const { engine, ...talk } = talkingEngine(manifests);
  service.context.engines = { ...service.context.engines, manifests: engine };
  const worked = service.execute(runId);
  const end = async () => {
    await talk.end();
    await worked;
  };
  return { runId, ...talk, end };
}

function tailing(client: ProvisioningClient, provisioningRunId: string, afterNumber = 0, follow = true) {
  const tail = reading(client.tailProvisioningLog({ provisioningRunId, afterNumber, follow }));
  const linesOf = (messages: readonly { lines: LogLine[] }[]) => messages.flatMap(({ lines }) => lines);
  return {
    next: tail.next,
    /** Lines up to the one with this number, and those that came with it. */
    async to(number: number): Promise<LogLine[]> {
      const lines: LogLine[] = [];
      await tail.find(`line ${number}`, (message) => {
        lines.push(...message.lines);
        return message.lines.some((line) => line.number === number);
      });
      return lines;
    },
    rest: async () => linesOf(await tail.rest()),
  };
}

const numbers = (lines: readonly LogLine[]) => lines.map(({ number }) => number);
const texts = (lines: readonly LogLine[]) => lines.map(({ text }) => text);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const said = (name: string, count: number) => upTo(count).map((number) => `${name} ${number}`);

test("tells lines as they are said, and goes on after the last one across a cut connection", async () => {
  const run = await talkingRun();
  const first = await server.connect(tenantId);
  const tail = tailing(first.client, run.runId);
  await run.say(...said("before", 150));
  const before = await tail.to(150);
  const lost = tail.next().catch(ConnectError.from);
  await first.cut();
  expect(await lost).toBeInstanceOf(ConnectError);

  await run.say(...said("meanwhile", 700));
  const again = tailing(tenant, run.runId, before.at(-1)?.number);
  const meanwhile = await again.to(850);
  await run.say(...said("after", 3));
  await run.end();
  const lines = [...before, ...meanwhile, ...(await again.rest())];
  expect(numbers(lines)).toEqual(upTo(lines.length));
  expect(texts(lines).slice(0, 853)).toEqual([...said("before", 150), ...said("meanwhile", 700), ...said("after", 3)]);
  expect(lines.length).toBeGreaterThan(853);
  expect(lines).toHaveLength(await service.database.runLogLine.count({ where: { runId: run.runId } }));
});

test("stays until a run waits for its approval, and from there on to its end", async () => {
  const runId = await planned("PRODUCTION");
  const planning = tailing(tenant, runId);
  await service.work();
  const plannedLines = await planning.rest();
  expect(plannedLines.length).toBeGreaterThan(0);

  const { planDigest } = await tenant.getPlan({ provisioningRunId: runId });
  await service.as(tenantId, "bob").approveProvisioning({ provisioningRunId: runId, planDigest });
  const applying = tailing(tenant, runId, plannedLines.length);
  await service.work();
  const appliedLines = await applying.rest();
  expect(texts(appliedLines).join("\n")).toMatch(/ done after \d+ ms/);
  expect(numbers([...plannedLines, ...appliedLines])).toEqual(upTo(plannedLines.length + appliedLines.length));
});

test("tells what there is of a run that is under way when it isn't to follow it, beyond the end nothing", async () => {
  const run = await talkingRun();
  await run.say(...said("line", 200));
  await tailing(tenant, run.runId).to(200);
  expect(texts(await tailing(tenant, run.runId, 198, false).rest())).toEqual(["line 199", "line 200"]);
  expect(await tailing(tenant, run.runId, 1_000, false).rest()).toEqual([]);
  await run.end();
  expect(await tailing(tenant, run.runId, 1_000).rest()).toEqual([]);
});

test("gives long lines in messages that every client can take", async () => {
  const run = await talkingRun();
  const long = "€".repeat(4_000);
  for (let line = 0; line < 450; line += 1) await run.say(long);
  await run.end();
  const lines = await tailing(tenant, run.runId, 0, false).rest();
  expect(texts(lines).filter((text) => text === long)).toHaveLength(450);
  expect(numbers(lines)).toEqual(upTo(lines.length));
});

test("cuts a flood in its middle: keeps how it began, its errors and how it ended", async () => {
  const run = await talkingRun();
  const failure: EngineEvent = {
    type: "diagnostic",
    diagnostic: { severity: "error", summary: "no room", detail: "the disk is full", address: "disk" },
  };
  await run.say(...said("line", 12_000));
  await run.tell(failure);
  await run.say(...said("more", 12_000));
  await run.end();

  const lines = await tailing(tenant, run.runId).rest();
  expect(numbers(lines)).toEqual(upTo(lines.length));
  const all = texts(lines);
  expect(all.slice(0, 10_000)).toEqual(said("line", 10_000));
  expect(all.slice(10_000, 10_003)).toEqual([
    expect.stringContaining("the log is cut here"),
    "error: disk: no room",
    "the disk is full",
  ]);
  const note = /\((\d+) lines are left out before these, the last ones\)/.exec(all[10_003] ?? "");
  const last = all.indexOf("more 12000");
  const ofThePlan = 500 - (last - 10_003);
  expect(Number(note?.[1])).toBe(2_000 + 12_000 - 500 + ofThePlan);
  expect(all.slice(10_004, last + 1)).toEqual(said("more", 12_000).slice(-(last - 10_003)));
});

test("another tenant's run and one that doesn't exist are both NOT_FOUND", async () => {
  const runId = await planned();
  const stranger = await server.connect(`tenant-${uuidv7()}`);
  for (const [id, client] of [
    [runId, stranger.client],
    [uuidv7(), tenant],
  ] as const) {
    const refusal = await tailing(client, id).next().catch(ConnectError.from);
    expect(refusal).toMatchObject({ code: Code.NotFound, rawMessage: `provisioning run ${id} does not exist` });
  }
});
