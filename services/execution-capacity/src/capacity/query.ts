import type { Prisma } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";

/** Runs a statement in a transaction, whichever driver holds it. */
export type Query = <Row>(statement: Prisma.Sql) => Promise<Row[]>;

export function queryOf(tx: Tx): Query {
  return <Row>(statement: Prisma.Sql) => tx.$queryRaw<Row[]>(statement);
}
