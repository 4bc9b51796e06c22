import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { until } from "@runtime-cloud/local-servers/until";
import { freePort } from "@runtime-cloud/local-servers/ports";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { type LogService, startLogService } from "./log-service.ts";

const QUEUE = "ExecutionCapacityService";
const APPLIED = "provisioning.runs.v1.provisioning-applied";
const RELEASED = "tooling.sandboxes.v1.sandbox-released";

let service: LogService;

beforeAll(async () => {
  service = await startLogService();
});
afterAll(() => service.close());

/** Gives the inbox events that no handler can read, and waits until they are parked. Answers their ids. */
async function park(tenantId: string, topics: readonly string[]): Promise<string[]> {
  const queue = service.queue(QUEUE);
  const events = topics.map((type) => ({
    specversion: "1.0",
    id: uuidv7(),
    source: "/elsewhere",
    type,
    tenantid: tenantId,
  }));
  await queue.addBulk(
    events.map((event) => ({
      name: event.type,
      data: { ...event, data: { provisioningRunId: 7 } },
      opts: { jobId: `evt_${event.id}`, attempts: 2, backoff: 1 },
    })),
  );
  await parked(events.map(({ id }) => id));
  return events.map(({ id }) => id);
}

const parked = (ids: readonly string[]) =>
  until("the events to be parked", 15_000, async () => {
    const failed = (await service.queue(QUEUE).getFailed()).map(({ id }) => id);
    return ids.every((id) => failed.includes(`evt_${id}`)) || undefined;
  });

/** How often each job was started since it came. */
const starts = async (ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await service.queue(QUEUE).getJob(`evt_${id}`))?.finishedOn));

const ids = (events: readonly { eventId: string }[]) => events.map(({ eventId }) => eventId).sort();

const refusal = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

test("lists the oldest failure first, over the pages too", async () => {
  const client = await service.as("tenant-order");
  const first = await park("tenant-order", [APPLIED]);
  const second = await park("tenant-order", [APPLIED]);
  const third = await park("tenant-order", [RELEASED]);
  const page = await client.listParkedEvents({ pageSize: 2 });
  expect(page.events.map(({ eventId }) => eventId)).toEqual([...first, ...second]);
  const next = await client.listParkedEvents({ pageSize: 2, pageToken: page.nextPageToken });
  expect(next.events.map(({ eventId }) => eventId)).toEqual(third);
});

test("lists a tenant's parked events with what is known of each, and no other tenant's", async () => {
  const client = await service.as("tenant-list");
  const mine = await park("tenant-list", [APPLIED, RELEASED]);
  await park("tenant-other", [APPLIED]);
  const { events, nextPageToken } = await client.listParkedEvents({});
  expect(ids(events)).toEqual([...mine].sort());
  expect(nextPageToken).toBe("");
  const applied = events.find(({ topic }) => topic === APPLIED);
  expect(applied).toMatchObject({ eventId: mine[0], tenantId: "tenant-list" });
  expect(applied?.attempts).toBeGreaterThan(0);
  expect(applied?.reason).toContain("ProvisioningApplied");
  expect(applied?.failedAt).toBeDefined();
  expect(ids((await client.listParkedEvents({ topics: [RELEASED] })).events)).toEqual([mine[1]]);
});

test("pages through them", async () => {
  const client = await service.as("tenant-many");
  const all = await park(
    "tenant-many",
    Array.from({ length: 5 }, () => APPLIED),
  );
  const found: string[] = [];
  let pageToken = "";
  do {
    const page = await client.listParkedEvents({ pageSize: 2, pageToken });
    expect(page.events.length).toBeLessThanOrEqual(2);
    found.push(...ids(page.events));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(found.sort()).toEqual([...all].sort());
});

test("redrives by id, by topic, or all; each gets its tries again; and answers how many", async () => {
  const client = await service.as("tenant-redrive");
  const all = await park("tenant-redrive", [APPLIED, APPLIED, RELEASED]);
  const first = await starts(all);
  expect(await client.redriveEvents({ eventIds: all.slice(0, 1) })).toMatchObject({ redriven: 1 });
  await again([0], first);
  expect(await client.redriveEvents({ topics: [RELEASED] })).toMatchObject({ redriven: 1 });
  await again([0, 2], first);
  expect(await client.redriveEvents({})).toMatchObject({ redriven: 3 });
  await again([0, 1, 2], first);
  expect(await client.redriveEvents({ eventIds: [uuidv7()] })).toMatchObject({ redriven: 0 });

  /** Those at these places were parked anew, and the others were left alone. */
  async function again(places: number[], before: (number | undefined)[]) {
    await parked(all);
    const now = await starts(all);
    expect(now.map((at, place) => at !== before[place])).toEqual(all.map((_, place) => places.includes(place)));
  }
});

test("everyone's are a platform service's business, and all of it needs events:operate", async () => {
  await park("tenant-one", [APPLIED]);
  const client = await service.as("tenant-two");
  expect(await refusal(client.listParkedEvents({ allTenants: true }))).toMatchObject({ code: Code.PermissionDenied });
  expect(await refusal(client.redriveEvents({ allTenants: true }))).toMatchObject({ code: Code.PermissionDenied });
  expect(await client.redriveEvents({})).toMatchObject({ redriven: 0 });
  const reader = await service.as("tenant-one", ["events:read"]);
  expect(await refusal(reader.listParkedEvents({}))).toMatchObject({ code: Code.PermissionDenied });
  const platform = await service.as("platform", [...allScopes, "tenants:any"]);
  const { events } = await platform.listParkedEvents({ allTenants: true, pageSize: 500 });
  expect(events.map(({ tenantId }) => tenantId)).toContain("tenant-one");
});

test("what came and is no event is listed without an id", async () => {
  await service.queue(QUEUE).add("nonsense", "not an object", { jobId: "evt_nonsense" });
  const platform = await service.as("platform", [...allScopes, "tenants:any"]);
  const event = await until("it to be parked", 10_000, async () => {
    const { events } = await platform.listParkedEvents({ allTenants: true, topics: ["nonsense"] });
    return events[0];
  });
  expect(event).toMatchObject({ eventId: "", tenantId: "" });
});

test("says that the queues are away when they are", async () => {
  const alone = await startLogService({ REDIS_URL: `redis://127.0.0.1:${await freePort()}` });
  try {
    const client = await alone.as("tenant");
    const options = { timeoutMs: 30_000 };
    expect(await refusal(client.redriveEvents({}, options))).toMatchObject({
      code: Code.Unavailable,
      rawMessage: expect.stringMatching(/^the queues /),
    });
  } finally {
    await alone.close();
  }
}, 60_000);
