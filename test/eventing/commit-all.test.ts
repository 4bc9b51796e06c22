import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { commitAll } from "@runtime-cloud/eventing/commit-all";
import { accept } from "@runtime-cloud/eventing/decision";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { StaleRow } from "@runtime-cloud/service-kit/errors";
import { quota } from "@runtime-cloud/state-machines/quota";

import { cause, setNewQuota } from "./quotas.ts";
import { openServiceDatabase, type ServiceDatabase } from "./service-database.ts";

let database: ServiceDatabase;
beforeAll(async () => {
  database = await openServiceDatabase();
});
afterAll(() => database.close());

const newQuotas = async (name: string) => [
  await setNewQuota(database, `${name}-a`),
  await setNewQuota(database, `${name}-b`),
];
type Quotas = Awaited<ReturnType<typeof newQuotas>>;

/** Raises all of them; `event` is what their history says. */
const raiseAll = (quotas: Quotas, { event = "set", written = quotas } = {}) =>
  unitOfWork(database.context, cause, async (unit) => {
    const all = quotas.map((each) => ({
      ...accept(quota, each, { type: "set", concurrentRuns: 9, concurrentSandboxes: 9, weight: 9 }),
      event,
    }));
    await commitAll(unit, all, () =>
      unit.tx.quota.updateManyAndReturn({
        where: { id: { in: written.map(({ id }) => id) } },
        data: { concurrentRuns: 9, version: { increment: 1 } },
        select: { id: true, version: true },
      }),
    );
  });

test("writes the history and the event of each row, with that row's version and tenant", async () => {
  const quotas = await newQuotas("each");
  await raiseAll(quotas);
  for (const { id, tenantId } of quotas) {
    const history = await database.client.transition.findMany({ where: { aggregateId: id, version: 1 } });
    expect(history).toMatchObject([
      { aggregate: "Quota", tenantId, fromState: "ACTIVE", event: "set", toState: "ACTIVE", actor: cause.actor },
    ]);
    const told = await database.client.outboxMessage.findMany({
      where: { subject: id },
      orderBy: { position: "desc" },
      take: 1,
    });
    expect(told).toMatchObject([
      { tenantId, envelope: { subject: id, tenantid: tenantId, aggregateversion: 1, data: { concurrentRuns: 9 } } },
    ]);
  }
});

test("rolls everything back when one row wasn't written, and when the database knows no such transition", async () => {
  const quotas = await newQuotas("none");
  await expect(raiseAll(quotas, { written: quotas.slice(1) })).rejects.toThrow(StaleRow);
  await expect(raiseAll(quotas, { event: "conjure" })).rejects.toThrow(
    /Quota has no transition from ACTIVE by conjure/,
  );
  const ids = quotas.map(({ id }) => id);
  expect(await database.client.quota.findMany({ where: { id: { in: ids } }, orderBy: { id: "asc" } })).toEqual(quotas);
  expect(await database.client.outboxMessage.count({ where: { subject: { in: ids } } })).toBe(2);
});

test("asks for no statement at all for no transitions", async () => {
  const save = () => Promise.reject(new Error("there is nothing to save"));
  const written = unitOfWork(database.context, cause, (unit) => commitAll(unit, [], save));
  await expect(written).resolves.toBeUndefined();
});
