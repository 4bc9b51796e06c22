import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  type LifecycleEdge,
  lifecycleEdges,
  machinesOf,
  type ServiceName,
} from "@runtime-cloud/state-machines/lifecycle-edges";
import { initialState } from "@runtime-cloud/state-machines/transition-table";
import pg from "pg";
import { type TestDatabase, testDatabase } from "../_support/database.ts";
import { insertSql, sampleRows } from "./rows.ts";

const FOREIGN_KEY_VIOLATION = "23503";
const CHECK_VIOLATION = "23514";
const services: ServiceName[] = ["iac-provisioning", "execution-capacity", "runtime-environment"];

describe.each(services)("the database of %s", (service) => {
  let database: TestDatabase;
  let pool: pg.Pool;

  beforeAll(async () => {
    database = await testDatabase(service);
    pool = new pg.Pool({ connectionString: database.url, max: 2 });
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  test("knows exactly the edges of its machines", async () => {
    const { rows } = await pool.query<LifecycleEdge>(
      `SELECT aggregate, from_state AS "fromState", event, to_state AS "toState" FROM lifecycle_edge`,
    );
    const sorted = (edges: object[]) => edges.map((edge) => JSON.stringify(edge, Object.keys(edge).sort())).sort();
    expect(sorted(rows)).toEqual(sorted(lifecycleEdges(service)));
  });

  describe.each(machinesOf[service].map((machine) => machine.id))("%s", (aggregate) => {
    const edge = lifecycleEdges(service).find((known) => known.aggregate === aggregate && known.fromState !== "[*]");
    const ends = machinesOf[service].flatMap(({ id, states }) =>
      id === aggregate ? Object.keys(states).filter((state) => states[state]?.type === "final") : [],
    );

    test("takes in the history of a transition that its machine has", async () => {
      await insertHistory(pool, { ...required(edge), version: 1 });
    });

    test("refuses an INSERT by hand of a transition that no machine has", async () => {
      const impossible = { ...required(edge), fromState: required(ends[0]), version: 2 };
      await expect(insertHistory(pool, impossible)).rejects.toMatchObject({ code: FOREIGN_KEY_VIOLATION });
    });

    test("refuses an UPDATE by hand that makes recorded history impossible", async () => {
      await insertHistory(pool, { ...required(edge), version: 3 });
      const update = pool.query("UPDATE transition SET from_state = $1 WHERE aggregate = $2 AND version = 3", [
        required(ends[0]),
        aggregate,
      ]);
      await expect(update).rejects.toMatchObject({ code: FOREIGN_KEY_VIOLATION });
    });

    test("refuses a row that is born, or moved by hand, where its machine has no edge", async () => {
      const { table, before, columns } = required(sampleRows[aggregate]);
      for (const sql of before) await pool.query(sql);
      const initial = initialState(required(machinesOf[service].find(({ id }) => id === aggregate)));
      const insert = (state: string) => pool.query(insertSql(table, state, columns));
      const move = (state: string) => pool.query(`UPDATE ${table} SET state = '${state}'`);

      await expect(insert(required(ends[0]))).rejects.toMatchObject({ code: CHECK_VIOLATION });
      await insert(initial);
      const [illegal, ...legal] = illegalPath(service, aggregate, initial);
      for (const state of legal) await move(state);
      await expect(move(required(illegal))).rejects.toMatchObject({ code: CHECK_VIOLATION });
    });
  });
});

/** A state that no edge leads to, and before it the states on the way to where that is so. */
function illegalPath(service: ServiceName, aggregate: string, from: string): string[] {
  const machine = required(machinesOf[service].find(({ id }) => id === aggregate));
  const next = lifecycleEdges(service)
    .filter((edge) => edge.aggregate === aggregate && edge.fromState === from)
    .map(({ toState }) => toState);
  const leap = Object.keys(machine.states).find((other) => other !== from && !next.includes(other));
  return leap === undefined ? [from, required(next.find((state) => machine.states[state]?.type === "final"))] : [leap];
}

function insertHistory(pool: pg.Pool, edge: ReturnType<typeof lifecycleEdges>[number] & { version: number }) {
  return pool.query(
    `INSERT INTO transition (aggregate, aggregate_id, tenant_id, version, from_state, event, to_state, actor, correlation_id)
     VALUES ($1, 'row', 'tenant', $2, $3, $4, $5, 'test', 'test')`,
    [edge.aggregate, edge.version, edge.fromState, edge.event, edge.toState],
  );
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the machines leave nothing to test here");
  return value;
}
