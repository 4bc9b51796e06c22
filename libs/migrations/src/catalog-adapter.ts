import { PrismaPg } from "@prisma/adapter-pg";
import {
  ColumnTypeEnum,
  type SqlDriverAdapter,
  type SqlMigrationAwareDriverAdapterFactory,
  type SqlQuery,
  type SqlResultSet,
} from "@prisma/driver-adapter-utils";
import type { Pool } from "pg";

/** Columns of PostgreSQL's catalogue whose type is `"char"`, as the schema engine names them. */
const SINGLE_CHARACTER_COLUMNS = ["constraint_type", "confdeltype", "confupdtype"];

/**
 * A connection through which the schema engine can read the catalogue of PostgreSQL 14 to 18, which the plain
 * adapter can't: it refuses the type `"char"`, and since PostgreSQL 18 a NOT NULL is a constraint of a kind that
 * the engine doesn't know (prisma/orm#29635).
 */
export function catalogAdapter(pool: Pool): SqlMigrationAwareDriverAdapterFactory {
  const plain = new PrismaPg(pool);
  return {
    provider: plain.provider,
    adapterName: plain.adapterName,
    connect: async () => readingCatalog(await plain.connect(), pool),
    connectToShadowDb: () => Promise.reject(new Error("Compare with a scratch database, not with a shadow one.")),
  };
}

function readingCatalog(plain: SqlDriverAdapter, pool: Pool): SqlDriverAdapter {
  return {
    provider: plain.provider,
    adapterName: plain.adapterName,
    queryRaw: async (query) => withCharacters(await plain.queryRaw(readable(query))),
    executeRaw: (query) => plain.executeRaw(query),
    // As one message, so that a script is a transaction; the plain adapter cuts it at each semicolon, bodies included.
    executeScript: async (script) => {
      await pool.query(script);
    },
    startTransaction: (isolationLevel) => plain.startTransaction(isolationLevel),
    getConnectionInfo: () => plain.getConnectionInfo?.() ?? { supportsRelationJoins: true },
    dispose: () => plain.dispose(),
  };
}

function readable(query: SqlQuery): SqlQuery {
  const sql = query.sql
    .replace("constr.contype AS constraint_type", "constr.contype::text AS constraint_type")
    .replaceAll(/con\.(confdeltype|confupdtype),/g, "con.$1::text AS $1,")
    .replace("contype NOT IN ('p', 'u', 'f')", "contype NOT IN ('p', 'u', 'f', 'n')");
  return { ...query, sql };
}

function withCharacters(result: SqlResultSet): SqlResultSet {
  const columnTypes = result.columnTypes.map((type, index) =>
    SINGLE_CHARACTER_COLUMNS.includes(result.columnNames[index] ?? "") ? ColumnTypeEnum.Character : type,
  );
  return { ...result, columnTypes };
}
