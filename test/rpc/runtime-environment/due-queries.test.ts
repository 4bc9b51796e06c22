import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { deadlines } from "@runtime-cloud/runtime-environment/deadlines";
import { z } from "zod";
import { Prisma } from "../../../services/runtime-environment/generated/prisma/client.ts";
import { type EnvironmentService, startEnvironments } from "../../_support/runtime-environment.ts";

const ROWS = 10_000;
const START_MS = 60_000;

let service: EnvironmentService;

beforeAll(async () => {
  service = await startEnvironments();
  await fill(service);
}, START_MS);
afterAll(() => service.close());

/** Environments, each with a finding, a suppression rule, an accepted proposal and one to decide, of which nothing is due for a day. */
async function fill({ database }: EnvironmentService): Promise<void> {
  const rows = Prisma.sql`generate_series(1, ${ROWS}::int) AS n`;
  const tomorrow = Prisma.sql`now() + interval '1 day'`;
  const id = Prisma.sql`'environment-' || n`;
  await database.$executeRaw`
    INSERT INTO inventory (id, state, tenant_id, project_id, class, observe_at, stale_at, observe_seconds,
      stale_after_seconds, propose_after_seconds)
    SELECT ${id}, 'UNOBSERVED', 'tenant', 'project', 'TEST', ${tomorrow}, ${tomorrow}, 60, 300, 60 FROM ${rows}`;
  await database.$executeRaw`UPDATE inventory SET state = 'FRESH'`;
  await database.$executeRaw`
    INSERT INTO suppression_rule (id, tenant_id, environment_id, resource_pattern, attribute_pattern, reason, until,
      created_by, created_at)
    SELECT gen_random_uuid(), 'tenant', ${id}, 'a', '', 'expected', ${tomorrow}, 'test', now() FROM ${rows}`;
  await database.$executeRaw`
    INSERT INTO finding (id, state, tenant_id, project_id, environment_id, specification_kind, specification_id,
      fingerprint, kind, resource, attribute, first_seen_at, last_seen_at, suppressed_until)
    SELECT gen_random_uuid(), 'SUPPRESSED', 'tenant', 'project', ${id}, 'RELEASE', gen_random_uuid(), 'f' || n,
      'ATTRIBUTE_CHANGED', 'web', 'replicas', now(), now(), ${tomorrow} FROM ${rows}`;
  const propose = () => database.$executeRaw`
    INSERT INTO proposal (id, state, tenant_id, project_id, environment_id, specification_id, direction, destructive,
      digest, finding_ids, proposed_at, expires_at, ask_at)
    SELECT gen_random_uuid(), 'PROPOSED', 'tenant', 'project', ${id}, gen_random_uuid(), 'REVERT_TO_SPECIFICATION',
      false, 'd', '{}', now(), ${tomorrow}, ${tomorrow} FROM ${rows}`;
  await propose();
  await database.$executeRaw`UPDATE proposal SET state = 'ACCEPTING'`;
  await propose();
  await database.$executeRaw`ANALYZE`;
}

const column = z.array(z.object({ "QUERY PLAN": z.json() }));

/** How the database would answer the queries of a deadline, which finds nothing due. */
async function plansOf(kind: string): Promise<string[]> {
  const { context, database } = service;
  const plans: string[] = [];
  const explain = async (strings: TemplateStringsArray, ...values: unknown[]) => {
    const query = Prisma.sql`EXPLAIN (FORMAT JSON) ${Prisma.sql(strings, ...values)}`;
    plans.push(JSON.stringify(column.parse(await database.$queryRaw(query))));
    return [];
  };
  const client = new Proxy(context.client, {
    get: (target, key): unknown => (key === "$queryRaw" ? explain : Reflect.get(target, key)),
  });
  const deadline = deadlines({ ...context, client }).find((each) => each.kind === kind);
  await deadline?.run();
  return plans;
}

test.each([
  "observation",
  "staleness",
  "proposal-expiry",
  "acceptance",
  "preview",
  "suppression-end",
  "suppression-rule-end",
])("what is due by %s is found by an index, whatever isn't", async (kind) => {
  const plans = await plansOf(kind);
  expect(plans).toHaveLength(1);
  expect(plans[0]).toMatch(/"Index Cond":"(?:[^"\\]|\\.)* <= statement_timestamp\(\)/);
});

test("what has stayed away is found among what is away", async () => {
  expect(await plansOf("vanished-drift")).toEqual([expect.stringContaining('"Index Name":"finding_vanished"')]);
});

test("what is to be proposed is found by one pass over environments and what is open, not one for each", async () => {
  expect(await plansOf("auto-propose")).toEqual([expect.stringContaining('"Join Type":"Semi"')]);
});
