import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { inboxJob } from "@runtime-cloud/eventing/inbox-job";
import { parseCloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { until } from "@runtime-cloud/local-servers/until";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { insertEvents, type Row, TOPIC } from "../../eventing/outbox-rows.ts";
import { type LogClient, type LogService, startLogService } from "./log-service.ts";

const EVER = timestampFromDate(new Date(0));

let service: LogService;

beforeAll(async () => {
  service = await startLogService();
});
afterAll(() => service.close());

type ReplayRequest = Parameters<LogClient["replayEvents"]>[0];

/** The progress that a replay told, one message each. */
async function replay(client: LogClient, request: ReplayRequest) {
  const progress: { sent: bigint; sequence: bigint; done: boolean }[] = [];
  for await (const { sent, sequence, done } of client.replayEvents(request)) progress.push({ sent, sequence, done });
  return progress;
}

/** Announces events, and waits until their subscribers' queues have them. */
async function publish(rows: readonly Row[]): Promise<string[]> {
  const { pool } = service.database;
  const ids = await insertEvents(pool, rows);
  await until("the events to be published", 10_000, async () => {
    const { rowCount } = await pool.query(
      "SELECT FROM outbox_message JOIN event_log ON message_id = id WHERE id = ANY($1) AND published_at IS NOT NULL",
      [ids],
    );
    return rowCount === ids.length || undefined;
  });
  return ids;
}

/** How often each event is in a subscriber's queue. */
async function deliveries(subscriber: string, tenantId: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { data } of await service.queue(subscriber).getWaiting()) {
    const event = parseCloudEvent(data);
    if (event.tenantid === tenantId) counts[event.id] = (counts[event.id] ?? 0) + 1;
  }
  return counts;
}

const times = (ids: string[], count: number) => Object.fromEntries(ids.map((id) => [id, count]));

const refusal = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

test("sends a subscriber its events again, though their jobs are still kept, and nobody else", async () => {
  const tenantId = "tenant-again";
  const ids = await publish([{ tenantId }, { tenantId }]);
  const client = await service.as(tenantId);
  const [progress] = await replay(client, { subscriber: "StudioBff", since: EVER });
  expect(progress).toMatchObject({ sent: 2n, done: true });
  expect(await deliveries("StudioBff", tenantId)).toEqual(times(ids, 2));
  expect(await deliveries("RunControlService", tenantId)).toEqual(times(ids, 1));

  await replay(client, { subscriber: "StudioBff", since: EVER });
  expect(await deliveries("StudioBff", tenantId)).toEqual(times(ids, 3));
});

test("a job that has the first one's id would be ignored: hence ids of their own", async () => {
  const tenantId = "tenant-same-id";
  const [id] = await publish([{ tenantId }]);
  const queue = service.queue("StudioBff");
  const first = (await queue.getWaiting()).find(({ data }) => parseCloudEvent(data).id === id);
  const { name, data, opts } = inboxJob(parseCloudEvent(first?.data));
  await queue.add(name, data, opts);
  expect(await deliveries("StudioBff", tenantId)).toEqual({ [String(id)]: 1 });
});

test("tells its progress page by page, and goes on where it broke off", async () => {
  const tenantId = "tenant-long";
  const ids = await publish(Array.from({ length: 250 }, () => ({ tenantId })));
  const client = await service.as(tenantId);
  const subscriber = "StudioBff";
  let broke = 0n;
  for await (const { sent, sequence } of client.replayEvents({ subscriber, since: EVER })) {
    expect(sent).toBe(100n);
    broke = sequence;
    break;
  }
  const before = await until("the page under way to end", 10_000, async () => {
    const counts = Object.values(await deliveries(subscriber, tenantId));
    return counts.filter((count) => count > 1).length % 50 === 0 ? counts : undefined;
  });
  expect(before).toHaveLength(250);
  const progress = await replay(client, { subscriber, since: EVER, afterSequence: broke });
  expect(progress.map(({ sent, done }) => [sent, done])).toEqual([
    [100n, false],
    [150n, true],
  ]);
  expect(Object.values(await deliveries(subscriber, tenantId)).every((count) => count >= 2)).toBe(true);
  expect(Object.keys(await deliveries(subscriber, tenantId)).sort()).toEqual([...ids].sort());
});

test("sends what was recorded in the asked time, of the asked topics", async () => {
  const tenantId = "tenant-some";
  const granted = "capacity.leases.v1.capacity-lease-granted";
  const early = await publish([{ tenantId }]);
  const rest = await publish([{ tenantId }, { tenantId, topic: granted }]);
  const client = await service.as(tenantId);
  const { events } = await client.listEvents({});
  const since = events.find(({ envelope }) => envelope?.["id"] === rest[0])?.recordedAt;
  if (!since) throw new Error("the event was recorded");

  await replay(client, { subscriber: "StudioBff", since, topics: [TOPIC] });
  expect(await deliveries("StudioBff", tenantId)).toMatchObject({
    ...times(early, 1),
    ...times(rest.slice(0, 1), 2),
  });
  const [none] = await replay(client, { subscriber: "StudioBff", since: EVER, until: timestampFromDate(new Date(1)) });
  expect(none).toEqual({ sent: 0n, sequence: 0n, done: true });
});

test("a handler of ours ignores what it had", async () => {
  const tenantId = "tenant-ours";
  const topic = "tooling.sandboxes.v1.sandbox-released";
  const data = { sandboxId: uuidv7(), tenantId };
  const [id] = await publish([{ tenantId, topic, data }]);
  const queue = service.queue("ExecutionCapacityService");
  const outcome = (jobId: string | undefined) =>
    until("the event to be taken in", 10_000, async () => {
      const job = (await queue.getCompleted()).find((done) => done.id === jobId || (!jobId && done.id?.includes("_r")));
      return job?.returnvalue;
    });
  expect(await outcome(`evt_${id}`)).toBe("handled");
  await replay(await service.as(tenantId), { subscriber: "ExecutionCapacityService", since: EVER, topics: [topic] });
  expect(await outcome(undefined)).toBe("duplicate");
});

test("refuses a subscriber that the deployment hasn't, and topics that it doesn't read, by name", async () => {
  const client = await service.as("tenant-wrong");
  expect(await refusal(replay(client, { subscriber: "AuditService", since: EVER }))).toMatchObject({
    code: Code.InvalidArgument,
    rawMessage:
      "subscriber: is none of this deployment's SUBSCRIBERS, which are ExecutionCapacityService, RunControlService, StudioBff",
  });
  const topics = ["provisioning.runs.v1.nonsense"];
  expect(await refusal(replay(client, { subscriber: "StudioBff", since: EVER, topics }))).toMatchObject({
    code: Code.InvalidArgument,
    rawMessage: expect.stringMatching(/^topics: provisioning.runs.v1.nonsense isn't for StudioBff, which reads /),
  });
  expect(await refusal(replay(client, { subscriber: "StudioBff" }))).toMatchObject({ code: Code.InvalidArgument });
});

test("needs the scope events:operate", async () => {
  const client = await service.as("tenant-wrong", ["events:read"]);
  expect(await refusal(replay(client, { subscriber: "StudioBff", since: EVER }))).toMatchObject({
    code: Code.PermissionDenied,
  });
});
