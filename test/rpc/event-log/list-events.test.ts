import { Code } from "@connectrpc/connect";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { logBounds } from "@runtime-cloud/eventing/event-log/event-log";
import { removeEvents } from "@runtime-cloud/eventing/event-log/remove-outlived";
import { until } from "@runtime-cloud/local-servers/until";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import { setNewQuota } from "../../eventing/quotas.ts";
import { insertEvents, type Row, TOPIC } from "../../eventing/outbox-rows.ts";
import { eventId, type LogClient, type LogService, startLogService } from "./log-service.ts";

const OTHER_TOPIC = "capacity.leases.v1.capacity-lease-granted";

let service: LogService;

beforeAll(async () => {
  service = await startLogService();
});
afterAll(() => service.close());

type ListRequest = Parameters<LogClient["listEvents"]>[0];

/** The ids of every page of a list, page by page. */
async function pages(client: LogClient, request: ListRequest): Promise<string[][]> {
  const found: string[][] = [];
  let pageToken = "";
  do {
    const page = await client.listEvents({ ...request, pageToken });
    found.push(page.events.map(eventId));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return found;
}

const ids = async (client: LogClient, request: ListRequest) => (await pages(client, request)).flat();

/** Announces events, and waits until they are in the log. */
async function announce(rows: readonly Row[]): Promise<string[]> {
  const { pool } = service.database;
  const announced = await insertEvents(pool, rows);
  await until("the log to have them", 10_000, async () => {
    const { rowCount } = await pool.query("SELECT FROM event_log WHERE message_id = ANY($1)", [announced]);
    return rowCount === announced.length || undefined;
  });
  return announced;
}

const code = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

test("gives an announced event as plain CloudEvents JSON, with its place and its instants", async () => {
  const client = await service.as("tenant-shape");
  const { id } = await setNewQuota(service.database, "tenant-shape", 3);
  const event = await until("the event, published", 10_000, async () => {
    const { events } = await client.listEvents({});
    return events.find(({ publishedAt }) => publishedAt !== undefined);
  });
  expect(event.sequence).toBeGreaterThan(0n);
  expect(event.recordedAt).toBeDefined();
  expect(event.envelope).toMatchObject({
    specversion: "1.0",
    type: TOPIC,
    subject: id,
    tenantid: "tenant-shape",
    data: { concurrentRuns: 3 },
  });
});

test("pages in order, each event once, oldest or newest first", async () => {
  const client = await service.as("tenant-pages");
  const announced = await announce(Array.from({ length: 7 }, () => ({ tenantId: "tenant-pages" })));
  expect(await pages(client, { pageSize: 3 })).toEqual([
    announced.slice(0, 3),
    announced.slice(3, 6),
    announced.slice(6),
  ]);
  expect(await ids(client, { pageSize: 3, newestFirst: true })).toEqual(announced.toReversed());
});

test("filters by topic and by subject", async () => {
  const client = await service.as("tenant-filters");
  const tenantId = "tenant-filters";
  const [a, b, c] = await announce([
    { tenantId, subject: "s1" },
    { tenantId, subject: "s2", topic: OTHER_TOPIC },
    { tenantId, subject: "s2" },
  ]);
  expect(await ids(client, { topics: [OTHER_TOPIC] })).toEqual([b]);
  expect(await ids(client, { topics: [OTHER_TOPIC, TOPIC] })).toEqual([a, b, c]);
  expect(await ids(client, { subject: "s2", pageSize: 1 })).toEqual([b, c]);
});

test("filters by the time of recording: from since on, before until", async () => {
  const client = await service.as("tenant-time");
  const tenantId = "tenant-time";
  const recorded = async (id: string | undefined) => {
    const { events } = await client.listEvents({});
    const at = events.find(({ envelope }) => envelope?.["id"] === id)?.recordedAt;
    if (!at) throw new Error("the event was recorded");
    return at;
  };
  const announced: string[] = [];
  for (const subject of ["first", "second", "third"]) announced.push(...(await announce([{ tenantId, subject }])));
  const [first, second, third] = announced;
  const [since, before] = [await recorded(second), await recorded(third)];
  expect(await ids(client, { since })).toEqual([second, third]);
  expect(await ids(client, { until: since })).toEqual([first]);
  expect(await ids(client, { since, until: before })).toEqual([second]);
  expect(await ids(client, { since, newestFirst: true })).toEqual([third, second]);
  expect(await code(client.listEvents({ since: before, until: since }))).toMatchObject({
    code: Code.InvalidArgument,
    rawMessage: "until: must be later than since",
  });
  expect(await code(client.listEvents({ since: { seconds: -1n } }))).toMatchObject({ code: Code.InvalidArgument });
});

test("shows a tenant its own events alone, and everyone's only to a platform service", async () => {
  const [mine] = await announce([{ tenantId: "tenant-mine" }, { tenantId: "tenant-theirs" }]);
  expect(await ids(await service.as("tenant-mine"), {})).toEqual([mine]);
  expect(await code((await service.as("tenant-mine")).listEvents({ allTenants: true }))).toMatchObject({
    code: Code.PermissionDenied,
    rawMessage: expect.stringContaining('allTenants needs the scope "tenants:any"'),
  });
  const platform = await service.as("platform", [...allScopes, "tenants:any"]);
  const tenants = new Set(
    (await platform.listEvents({ allTenants: true, pageSize: 500 })).events.map(
      ({ envelope }) => envelope?.["tenantid"],
    ),
  );
  expect([...tenants]).toEqual(expect.arrayContaining(["tenant-mine", "tenant-theirs"]));
});

test("needs the scope events:read", async () => {
  const client = await service.as("tenant-mine", ["capacity:read"]);
  expect(await code(client.listEvents({}))).toMatchObject({ code: Code.PermissionDenied });
});

test("refuses a token of another list, and one that is none, by the field's name", async () => {
  const client = await service.as("tenant-token");
  await announce([{ tenantId: "tenant-token" }, { tenantId: "tenant-token" }]);
  const { nextPageToken: pageToken } = await client.listEvents({ pageSize: 1 });
  for (const request of [{ pageToken, topics: [TOPIC] }, { pageToken, newestFirst: true }, { pageToken: "!" }]) {
    expect(await code(client.listEvents(request))).toMatchObject({
      code: Code.InvalidArgument,
      rawMessage: expect.stringMatching(/^pageToken: /),
    });
  }
});

test("refuses a topic that this service doesn't announce, and names those that it does", async () => {
  const client = await service.as("tenant-foreign");
  const topics = [TOPIC, "capacity.quotas.v1.quota-changd", "promotion.promotions.v1.promotion-approved"];
  expect(await code(client.listEvents({ topics }))).toMatchObject({
    code: Code.InvalidArgument,
    rawMessage: expect.stringMatching(
      /^topics\[1\]: .*quota-changd isn't announced by .*quota-changed.*topics\[2\]: /s,
    ),
  });
});

test("keeps a page of large events below a message's limit, and goes on", async () => {
  const tenantId = "tenant-large";
  const large = { filling: "x".repeat(60_000) };
  const announced = await announce(Array.from({ length: 80 }, () => ({ tenantId, data: large })));
  const found = await pages(await service.as(tenantId), { pageSize: 500 });
  expect(found.flat()).toEqual(announced);
  expect(found.length).toBeGreaterThan(1);
});

test("a page whose start retention has removed is refused with where the log starts now", async () => {
  const { pool } = service.database;
  const client = await service.as("tenant-removed");
  const announced = await announce(Array.from({ length: 4 }, () => ({ tenantId: "tenant-removed" })));
  const { nextPageToken: pageToken } = await client.listEvents({ pageSize: 1 });
  await until("all to be published", 10_000, async () => {
    const { rowCount } = await pool.query("SELECT FROM outbox_message WHERE published_at IS NULL");
    return rowCount === 0 || undefined;
  });
  await pool.query("UPDATE outbox_message SET published_at = now() - interval '8 days' WHERE id = ANY($1)", [
    announced.slice(0, 3),
  ]);
  await pool.query("UPDATE event_log SET recorded_at = now() - interval '8 days' WHERE message_id = ANY($1)", [
    announced.slice(0, 3),
  ]);
  const { newest } = await logBounds(pool);
  await removeEvents(pool, 7, newest - 4n);

  expect(await code(client.listEvents({ pageSize: 1, pageToken }))).toMatchObject({
    code: Code.OutOfRange,
    rawMessage: expect.stringContaining(`go on after ${newest - 1n}`),
  });
  expect(await ids(client, {})).toEqual(announced.slice(3));
  expect(await ids(client, { since: timestampFromDate(new Date(0)) })).toEqual(announced.slice(3));
});
