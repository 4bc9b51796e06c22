import { type InventoryChange, Prisma } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";

/** Of the facts in one page; a message may have 4 MiB. */
const MAX_PAGE_BYTES = 1_024 * 1_024;

export type KnownChange = Pick<InventoryChange, "revision" | "at" | "actor" | "facts">;

/** The newest changes, or those before a revision, newest first. `more` says whether there are older ones. */
export async function changesBefore(tx: Tx, { environmentId, before, size }: Before): Promise<ChangePage> {
  const isBefore = before === undefined ? Prisma.empty : Prisma.sql`AND revision < ${before}`;
  const rows = await tx.$queryRaw<Row[]>(
    pageOf(Prisma.sql`
    SELECT revision, at, actor, facts, row_number() OVER (ORDER BY revision DESC) AS place
    FROM inventory_change WHERE inventory_id = ${environmentId} ${isBefore}
    ORDER BY revision DESC LIMIT ${size + 1}`),
  );
  return pageFrom(rows, size);
}

/** The changes after a revision, in order. */
export async function changesAfter(tx: Tx, { environmentId, after, size }: After): Promise<ChangePage> {
  const rows = await tx.$queryRaw<Row[]>(
    pageOf(Prisma.sql`
    SELECT revision, at, actor, facts, row_number() OVER (ORDER BY revision) AS place
    FROM inventory_change WHERE inventory_id = ${environmentId} AND revision > ${after}
    ORDER BY revision LIMIT ${size + 1}`),
  );
  return pageFrom(rows, size);
}

/** Cuts a page where it has grown large. One change at least is left, if there is one. */
function pageOf(chosen: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`
    SELECT revision, at, actor, facts, chosen FROM (
      SELECT *, (count(*) OVER ())::int AS chosen,
        sum(octet_length(facts::text)) OVER (ORDER BY place) - octet_length(facts::text) AS bytes_before
      FROM (${chosen}) change
    ) measured
    WHERE bytes_before < ${MAX_PAGE_BYTES}
    ORDER BY place`;
}

function pageFrom(rows: readonly Row[], size: number): ChangePage {
  const changes = rows.slice(0, size);
  return { changes, more: (rows[0]?.chosen ?? 0) > changes.length };
}

export interface ChangePage {
  changes: readonly KnownChange[];
  more: boolean;
}

type Row = KnownChange & { chosen: number };

interface Before {
  environmentId: string;
  /** Undefined: from the newest on. */
  before: bigint | undefined;
  /** At most this many: fewer if they are large. */
  size: number;
}

type After = Omit<Before, "before"> & { after: bigint };
