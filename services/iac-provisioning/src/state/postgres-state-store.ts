import { z } from "zod";
import type { Queryable } from "./queryable.ts";
import type { StateKey } from "./state-key.ts";
import type { StateLock, StateStore, StateVersion, WriteRefusal } from "./state-store.ts";

const currentRow = z.object({
  lineage: z.string(),
  serial: z.int(),
  digest: z.string(),
  sealed: z.instanceof(Uint8Array),
});
const lockRow = z.object({ id: z.string(), runId: z.string(), epoch: z.int(), info: z.string() });

/** So many versions of a state are kept. */
const KEPT_VERSIONS = 100;
/** So many older ones a write removes: more than it adds, so that those of former times go by and by. */
const REMOVED_AT_ONCE = 10;

/** The StateStore in PostgreSQL. Each verb is one statement, so each is atomic by itself. */
export function postgresStateStore(db: Queryable): StateStore {
  return {
    read: (key) => readCurrent(db, key),

    async write(key, version, { id, runId, epoch }) {
      const { rowCount } = await db.query(WRITE, [
        ...columns(key),
        version.lineage,
        version.serial,
        version.digest,
        version.sealed,
        id,
        runId,
        epoch,
      ]);
      if (rowCount === 1) return "written";
      const holder = await readLock(db, key);
      if (holder?.id !== id || holder.runId !== runId || holder.epoch !== epoch) return "not-locked";
      return whyNotNext(await readCurrent(db, key), version);
    },

    async remove(key, { id, runId, epoch }) {
      const { rowCount } = await db.query(REMOVE, [...columns(key), id, runId, epoch]);
      return rowCount === 1 ? "removed" : "not-locked";
    },

    async lock(key, { id, runId, epoch, info }) {
      const { rowCount } = await db.query(LOCK, [...columns(key), id, runId, epoch, info]);
      return rowCount === 1 ? undefined : readLock(db, key);
    },

    async unlock(key, { id, runId, epoch }) {
      const { rowCount } = await db.query(UNLOCK, [...columns(key), id, runId, epoch]);
      return rowCount === 1 ? undefined : readLock(db, key);
    },

    async breakLock(key, runId) {
      const { rowCount } = await db.query(BREAK_LOCK, [...columns(key), runId]);
      return rowCount === 1;
    },
  };
}

async function readCurrent(db: Queryable, key: StateKey): Promise<StateVersion | undefined> {
  const { rows } = await db.query(READ, columns(key));
  return rows[0] === undefined ? undefined : currentRow.parse(rows[0]);
}

async function readLock(db: Queryable, key: StateKey): Promise<StateLock | undefined> {
  const { rows } = await db.query(READ_LOCK, columns(key));
  return rows[0] === undefined ? undefined : lockRow.parse(rows[0]);
}

/** A write whose reply was lost comes again: the very version that is current counts as written. */
function whyNotNext(current: StateVersion | undefined, next: StateVersion): "written" | WriteRefusal {
  if (current?.lineage !== next.lineage) return "lineage-differs";
  return current.serial === next.serial && current.digest === next.digest ? "written" : "serial-not-newer";
}

function columns({ tenantId, environmentId, kind }: StateKey): string[] {
  return [tenantId, environmentId, kind];
}

const OF_KEY = "tenant_id = $1 AND environment_id = $2 AND kind = $3";
const UNLOCKED = "lock_id = NULL, lock_run_id = NULL, lock_epoch = NULL, lock_info = NULL, locked_at = NULL";

const READ = `
  SELECT version.lineage, version.serial, version.digest, version.sealed
  FROM engine_state state
  JOIN engine_state_version version USING (tenant_id, environment_id, kind, lineage, serial)
  WHERE ${OF_KEY} AND state.removed_at IS NULL`;

const WRITE = `
  WITH next AS (
    UPDATE engine_state
    SET lineage = $4, serial = $5, removed_at = NULL, updated_at = clock_timestamp()
    WHERE ${OF_KEY} AND lock_id = $8 AND lock_run_id = $9 AND lock_epoch = $10
      AND (lineage IS NULL OR (lineage = $4 AND serial < $5) OR (lineage <> $4 AND removed_at IS NOT NULL))
    RETURNING 1
  ), outlived AS (
    DELETE FROM engine_state_version old USING next
    WHERE ${OF_KEY} AND (old.lineage, old.serial) IN (
      SELECT lineage, serial FROM engine_state_version
      WHERE ${OF_KEY}
      ORDER BY written_at DESC, serial DESC
      OFFSET ${KEPT_VERSIONS - 1} LIMIT ${REMOVED_AT_ONCE}
    )
  )
  INSERT INTO engine_state_version
    (tenant_id, environment_id, kind, lineage, serial, digest, sealed, run_id, epoch, written_at)
  SELECT $1, $2, $3, $4, $5, $6::text, $7::bytea, $9, $10, clock_timestamp() FROM next`;

const REMOVE = `
  UPDATE engine_state
  SET removed_at = clock_timestamp(), updated_at = clock_timestamp()
  WHERE ${OF_KEY} AND lock_id = $4 AND lock_run_id = $5 AND lock_epoch = $6`;

const LOCK = `
  INSERT INTO engine_state
    (tenant_id, environment_id, kind, lock_id, lock_run_id, lock_epoch, lock_info, locked_at, updated_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp(), clock_timestamp())
  ON CONFLICT (tenant_id, environment_id, kind) DO UPDATE
  SET lock_id = $4, lock_run_id = $5, lock_epoch = $6, lock_info = $7, locked_at = clock_timestamp()
  WHERE engine_state.lock_id IS NULL OR (engine_state.lock_run_id = $5 AND engine_state.lock_epoch < $6)`;

const UNLOCK = `
  UPDATE engine_state SET ${UNLOCKED}
  WHERE ${OF_KEY} AND lock_id = $4 AND lock_run_id = $5 AND lock_epoch = $6`;

const BREAK_LOCK = `UPDATE engine_state SET ${UNLOCKED} WHERE ${OF_KEY} AND lock_run_id = $4`;

const READ_LOCK = `
  SELECT lock_id AS id, lock_run_id AS "runId", lock_epoch AS epoch, lock_info AS info
  FROM engine_state WHERE ${OF_KEY} AND lock_id IS NOT NULL`;
