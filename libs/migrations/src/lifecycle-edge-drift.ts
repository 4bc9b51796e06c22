import { withPool } from "./migration-lock.ts";

/** One transition that a machine allows, as table `lifecycle_edge` holds it. */
export interface LifecycleEdge {
  readonly aggregate: string;
  readonly fromState: string;
  readonly event: string;
  readonly toState: string;
}

/**
 * The SQL that would make a database's `lifecycle_edge` equal to the machines' edges; empty when they are equal.
 * Its order is fixed, so the same difference always gives the same text.
 */
export async function lifecycleEdgeDrift(databaseUrl: string, edges: readonly LifecycleEdge[]): Promise<string> {
  const known = new Map((await storedEdges(databaseUrl)).map((edge) => [rowOf(edge), edge]));
  const wanted = new Map(edges.map((edge) => [rowOf(edge), edge]));
  const added = [...wanted.keys()].filter((row) => !known.has(row)).sort();
  const removed = [...known.keys()].filter((row) => !wanted.has(row)).sort();
  return [insertOf(added), deleteOf(removed)].filter((sql) => sql !== "").join("\n");
}

async function storedEdges(databaseUrl: string): Promise<LifecycleEdge[]> {
  return withPool(databaseUrl, async (pool) => {
    const table = await pool.query(
      "SELECT 1 FROM pg_tables WHERE schemaname = 'public' AND tablename = 'lifecycle_edge'",
    );
    if (table.rowCount === 0) return [];
    const edges = await pool.query<LifecycleEdge>(
      `SELECT aggregate, from_state AS "fromState", event, to_state AS "toState" FROM lifecycle_edge`,
    );
    return edges.rows;
  });
}

function insertOf(rows: readonly string[]): string {
  if (rows.length === 0) return "";
  return `-- LifecycleEdges\nINSERT INTO "lifecycle_edge" ("aggregate", "from_state", "event", "to_state") VALUES\n${list(rows)};\n`;
}

function deleteOf(rows: readonly string[]): string {
  if (rows.length === 0) return "";
  const warning =
    "-- Fails while recorded transitions still name these edges: their history must be kept or moved first.";
  return `${warning}\nDELETE FROM "lifecycle_edge" WHERE ("aggregate", "from_state", "event", "to_state") IN (\n${list(rows)}\n);\n`;
}

function list(rows: readonly string[]): string {
  return rows.map((row) => `    ${row}`).join(",\n");
}

function rowOf({ aggregate, fromState, event, toState }: LifecycleEdge): string {
  return `(${[aggregate, fromState, event, toState].map(literal).join(", ")})`;
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
