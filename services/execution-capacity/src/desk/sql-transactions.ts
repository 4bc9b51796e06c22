import type { TransactionalClient } from "@runtime-cloud/service-kit/transact";
import type pg from "pg";
import type { Prisma } from "../../generated/prisma/client.ts";
import type { Query } from "../capacity/query.ts";

/** Transactions on the driver itself: what Prisma adds to each statement is more than a lease costs in a batch. */
export function sqlTransactions(pool: pg.Pool): TransactionalClient<Query> & { query: Query } {
  const names = new Map<string, string>();

  return {
    /** A statement that is a transaction by itself. */
    async query<Row>({ text, values }: Prisma.Sql) {
      return (await pool.query<Row & pg.QueryResultRow>({ name: nameOf(names, text), text, values })).rows;
    },
    async $transaction(work) {
      const connection = await pool.connect();
      const query = async <Row>(statement: Prisma.Sql): Promise<Row[]> => {
        const { text, values } = statement;
        return (await connection.query<Row & pg.QueryResultRow>({ name: nameOf(names, text), text, values })).rows;
      };
      let broken = false;
      try {
        await connection.query("BEGIN");
        const result = await work(query);
        await connection.query("COMMIT");
        return result;
      } catch (error) {
        await connection.query("ROLLBACK").catch(() => (broken = true));
        throw error;
      } finally {
        connection.release(broken);
      }
    },
  };
}

/** A connection keeps a named statement prepared; there are but a few. */
function nameOf(names: Map<string, string>, text: string): string {
  const known = names.get(text);
  if (known !== undefined) return known;
  const name = `capacity_${names.size}`;
  names.set(text, name);
  return name;
}
