import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import {
  declare,
  type IacService,
  plan,
  type ProvisioningClient,
  refusalOf,
  startIacProvisioning,
  webService,
} from "../../_support/iac-provisioning.ts";
import { type Listening, listening } from "./listening.ts";

let service: IacService;
let server: Listening;
let tenantId: string;
let tenant: ProvisioningClient;

beforeAll(async () => {
  service = await startIacProvisioning();
  server = await listening(service);
});
afterAll(async () => {
  await server.close();
  await service.close();
});
beforeEach(async () => {
  tenantId = `tenant-${uuidv7()}`;
  tenant = (await server.connect(tenantId)).client;
});

/** A run that is over, with a plan and a receipt of so many resources, each with a text of so many characters. */
async function appliedRun(count: number, size = 10): Promise<string> {
  const runId = await plan(tenant, await declare(tenant, webService(await service.environment(tenantId))));
  await service.work();
  const { database } = service;
  const text = "x".repeat(size);
  await database.$transaction([
    database.plannedChange.deleteMany({ where: { runId } }),
    database.receiptEntry.deleteMany({ where: { runId } }),
    database.$executeRaw`
      INSERT INTO planned_change
        (run_id, ordinal, address, resource_type, actions, previous_address, import_id, deposed, after)
      SELECT ${runId}::uuid, ordinal, 'app[' || ordinal || ']', 'app', '{create}', 'old', 'id-1', 'd1',
        jsonb_build_object('text', ${text}::text)
      FROM generate_series(0, ${count - 1}::int) AS ordinal`,
    database.$executeRaw`
      INSERT INTO receipt_entry (run_id, ordinal, address, resource_type, actions, outcome, diagnostic)
      SELECT ${runId}::uuid, ordinal, 'app[' || ordinal || ']', 'app', '{create}', 'FAILED', ${text}
      FROM generate_series(0, ${count - 1}::int) AS ordinal`,
  ]);
  return runId;
}

type Page = { addresses: string[]; nextPageToken: string };

async function planPage(provisioningRunId: string, pageSize: number, pageToken: string): Promise<Page> {
  const { changes, nextPageToken } = await tenant.getPlan({ provisioningRunId, pageSize, pageToken });
  return { addresses: changes.map(({ address }) => address), nextPageToken };
}
async function receiptPage(provisioningRunId: string, pageSize: number, pageToken: string): Promise<Page> {
  const { entries, nextPageToken } = await tenant.getReceipt({ provisioningRunId, pageSize, pageToken });
  return { addresses: entries.map(({ address }) => address), nextPageToken };
}
const lists = [
  ["plan", planPage],
  ["receipt", receiptPage],
] as const;

/** Every page, to the last. */
async function pages(page: typeof planPage, runId: string, pageSize = 0): Promise<string[][]> {
  const read: string[][] = [];
  let token = "";
  do {
    const { addresses, nextPageToken } = await page(runId, pageSize, token);
    read.push(addresses);
    token = nextPageToken;
  } while (token !== "");
  return read;
}

const addresses = (count: number) => Array.from({ length: count }, (_, ordinal) => `app[${ordinal}]`);

test.each(lists)("gives a large %s page by page, in its order", async (_name, page) => {
  const runId = await appliedRun(1_150);
  const read = await pages(page, runId);
  expect(read.map(({ length }) => length)).toEqual([1_000, 150]);
  expect(read.flat()).toEqual(addresses(1_150));
  expect((await pages(page, runId, 575)).map(({ length }) => length)).toEqual([575, 575]);
});

test.each(lists)("gives fewer to a page of a %s whose resources are large", async (_name, page) => {
  const runId = await appliedRun(120, 50_000);
  const read = await pages(page, runId);
  expect(read.length).toBeGreaterThan(2);
  expect(read.flat()).toEqual(addresses(120));
});

test.each(lists)(
  "refuses another list's token for a %s, one that was made up, and a page too large",
  async (_name, page) => {
    const [runId, other] = [await appliedRun(3), await appliedRun(3)];
    const { nextPageToken } = await page(other, 2, "");
    const foreign = await refusalOf(page(runId, 2, nextPageToken));
    expect(foreign.code).toBe(Code.InvalidArgument);
    expect(foreign.rawMessage).toContain("belongs to a list with other filters");
    expect((await refusalOf(page(runId, 2, "made-up"))).code).toBe(Code.InvalidArgument);
    expect((await refusalOf(page(runId, 1_001, ""))).code).toBe(Code.InvalidArgument);
    expect((await refusalOf(page(runId, -1, ""))).code).toBe(Code.InvalidArgument);
  },
);

test("tells all that is known of a change and of what became of it", async () => {
  const provisioningRunId = await appliedRun(1);
  const { changes, summary } = await tenant.getPlan({ provisioningRunId });
  expect(changes).toEqual([
    expect.objectContaining({
      resourceType: "app",
      previousAddress: "old",
      importId: "id-1",
      deposed: "d1",
      after: { text: "xxxxxxxxxx" },
    }),
  ]);
  expect(summary?.adds).toBeGreaterThan(0);
  const { entries } = await tenant.getReceipt({ provisioningRunId });
  expect(entries).toEqual([expect.objectContaining({ resourceType: "app", diagnostic: "xxxxxxxxxx" })]);
});

test("tells the names of sensitive outputs, and nothing more of them", async () => {
  const provisioningRunId = await appliedRun(1);
  await service.database.provisioningRun.update({
    where: { id: provisioningRunId },
    data: { sensitiveOutputs: ["password"] },
  });
  const { run } = await tenant.getProvisioningRun({ provisioningRunId });
  expect(run?.sensitiveOutputs).toEqual(["password"]);
  expect(run?.outputs).not.toHaveProperty("password");
});
