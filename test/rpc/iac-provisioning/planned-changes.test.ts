import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { ProvisioningKind, RunMode } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { PlannedChange } from "@runtime-cloud/iac-provisioning/engines/engine-event";
import { readPlannedChanges } from "@runtime-cloud/iac-provisioning/runs/planned-changes";
import { declare, type IacService, plan, startIacProvisioning, webService } from "../../_support/iac-provisioning.ts";

const MEBIBYTE = 1024 * 1024;

let service: IacService;
beforeEach(async () => {
  service = await startIacProvisioning();
});
afterEach(() => service.close());

/** Plans a run whose engine finds these changes. */
async function planned(changes: readonly PlannedChange[]): Promise<string> {
  const { manifests } = service.context.engines;
  service.context.engines = {
    ...service.context.engines,
    manifests: {
      ...manifests,
      async *plan(job) {
        const outcome = yield* manifests.plan(job);
        return outcome.result === "planned" ? { ...outcome, changes } : outcome;
      },
    },
  };
  const client = service.as("tenant");
  const specificationId = await declare(client, webService(await service.environment("tenant")));
  const runId = await plan(client, specificationId, ProvisioningKind.PROMOTION, RunMode.PLAN_ONLY);
  await service.executeNext();
  return runId;
}

function change(address: string, more: Partial<PlannedChange> = {}): PlannedChange {
  return { address, resourceType: "vm", actions: ["create"], before: null, after: { size: 1 }, ...more };
}

test("tells where a resource was, under which id it is taken in, and which object a replacement left behind", async () => {
  const runId = await planned([
    change("vm.moved", { actions: ["no-op"], previousAddress: "vm.old", before: { size: 1 } }),
    change("vm.taken", { importId: "i-0123" }),
    change("vm.left", { actions: ["delete"], deposed: "b3c9a1f0", before: { size: 1 }, after: null }),
  ]);
  const { changes } = await service.as("tenant").getPlan({ provisioningRunId: runId });
  expect(changes).toMatchObject([
    { address: "vm.moved", actions: ["no-op"], previousAddress: "vm.old" },
    { address: "vm.taken", importId: "i-0123" },
    { address: "vm.left", actions: ["delete"], deposed: "b3c9a1f0", before: { size: 1 } },
  ]);
  expect(changes[2]?.after).toBeUndefined();
  expect(changes[0]?.deposed).toBeUndefined();
});

test("writes a plan of large resources in statements of bounded size, and in its order", async () => {
  const query = jest.spyOn(service.context.pool, "query");
  const large = Array.from({ length: 40 }, (_, index) =>
    change(`vm.large[${index}]`, { after: { a: "x".repeat(200_000) } }),
  );
  const small = Array.from({ length: 450 }, (_, index) => change(`vm.small[${index}]`));
  const runId = await planned([...large, ...small]);

  const calls: readonly (readonly unknown[])[] = query.mock.calls;
  const batches = calls
    .filter(([sql]) => typeof sql === "string" && sql.includes("INSERT INTO planned_change"))
    .map(([, values]) => JSON.stringify(values).length);
  expect(batches.length).toBeGreaterThanOrEqual(8 + 2);
  expect(Math.max(...batches)).toBeLessThan(1.5 * MEBIBYTE);

  const rows = await service.database.plannedChange.findMany({
    where: { runId },
    orderBy: { ordinal: "asc" },
    select: { address: true },
  });
  expect(rows.map(({ address }) => address)).toEqual([...large, ...small].map(({ address }) => address));
});

test("reads a plan of any size back for its receipt, without its attributes", async () => {
  const changes = Array.from({ length: 5_001 }, (_, index) => change(`vm.all[${index}]`, { deposed: `d-${index}` }));
  const runId = await planned(changes);
  const run = await service.database.provisioningRun.findUniqueOrThrow({ where: { id: runId } });
  const read = await readPlannedChanges(service.context, { run });
  expect(read).toEqual(changes.map((planned) => ({ ...planned, after: null })));
});
