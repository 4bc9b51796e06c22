import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { OutOfRange } from "@runtime-cloud/service-kit/errors";
import type pg from "pg";

/** An event in its place. */
export interface LogEntry {
  sequence: bigint;
  recordedAt: Date;
  publishedAt: Date | null;
  envelope: CloudEvent;
}

/** Which entries are wanted; what is undefined lets everything through. */
export interface LogFilter {
  topics?: readonly string[] | undefined;
  tenantId?: string | undefined;
  subject?: string | undefined;
}

/** A stretch of the log: what lies between two sequences, neither included. */
export interface Stretch {
  above: bigint;
  below: bigint;
}

/** What one look at a stretch found. */
export interface LogPage {
  /** In the order of their sequences, or against it. */
  entries: LogEntry[];
  /** What is left of the stretch, or undefined when nothing is. */
  rest: Stretch | undefined;
}

/** The log's ends. */
export interface LogBounds {
  newest: bigint;
  /** The highest sequence that retention has removed; 0 when it has removed nothing. */
  removed: bigint;
}

/** Of one look: envelopes have up to 64 KiB each. */
export const LOG_PAGE = 100;
/** How many sequences one look passes over at most, so that a filter that matches little can't hold the database. */
const SPAN = 50_000n;

export async function logBounds(pool: pg.Pool): Promise<LogBounds> {
  const { rows } = await pool.query<Bounds>("SELECT newest, removed FROM event_log_bounds");
  const bounds = rows[0];
  if (!bounds) throw new Error("event_log_bounds lost its row");
  return { newest: BigInt(bounds.newest), removed: BigInt(bounds.removed) };
}

/**
 * Looks at the start of a stretch, which must end at or before the newest entry: `oldest` first or `newest` first.
 * Throws OutOfRange when retention has removed what comes right after `cursor`, which the stretch is to follow.
 */
export async function readLog(
  pool: pg.Pool,
  { topics, tenantId, subject }: LogFilter,
  { above, below }: Stretch,
  { limit = LOG_PAGE, newestFirst = false, cursor }: { limit?: number; newestFirst?: boolean; cursor?: bigint } = {},
): Promise<LogPage> {
  const from = newestFirst ? max(above, below - 1n - SPAN) : above;
  const to = newestFirst ? below : min(below, above + 1n + SPAN);
  // One statement, so one moment: what retention removes later is none of this page's business. The page is settled
  // before the envelopes are fetched, lest the planner reads the whole outbox.
  const { rows } = await pool.query<Row & { removed: string }>(
    `WITH page AS MATERIALIZED (
       SELECT sequence, recorded_at, message_id FROM event_log
       WHERE sequence > $1::bigint AND sequence < $2::bigint
         AND ($3::text[] IS NULL OR topic = ANY($3)) AND ($4::text IS NULL OR tenant_id = $4)
         AND ($5::text IS NULL OR subject = $5)
       ORDER BY sequence ${newestFirst ? "DESC" : "ASC"} LIMIT $6
     ),
     entry AS (
       SELECT page.sequence, page.recorded_at, message.published_at, message.envelope
       FROM page LEFT JOIN outbox_message message ON message.id = page.message_id
     )
     SELECT bounds.removed, sequence, recorded_at AS "recordedAt", published_at AS "publishedAt", envelope
     FROM event_log_bounds bounds LEFT JOIN entry ON true
     ORDER BY sequence ${newestFirst ? "DESC" : "ASC"}`,
    [from, to, topics?.length ? topics : null, tenantId ?? null, subject ?? null, limit],
  );
  const removed = BigInt(rows[0]?.removed ?? 0);
  if (cursor !== undefined) refuseExpired(cursor, removed);
  const found = rows.flatMap((row) => (row.sequence === null ? [] : [{ ...row, sequence: BigInt(row.sequence) }]));
  const last = found.length === limit ? found.at(-1)?.sequence : undefined;
  const rest = newestFirst ? { above, below: last ?? from + 1n } : { above: last ?? to - 1n, below };
  const entries = found.flatMap(({ sequence, recordedAt, publishedAt, envelope }) =>
    envelope ? [{ sequence, recordedAt, publishedAt, envelope }] : [],
  );
  return { entries, rest: rest.above + 1n < rest.below ? rest : undefined };
}

/** The newest sequence that was recorded before an instant; 0 when none was, or none of them is kept. */
export async function sequenceBefore(pool: pg.Pool, instant: Date): Promise<bigint> {
  const { rows } = await pool.query<{ sequence: string }>(
    "SELECT sequence FROM event_log WHERE recorded_at < $1 ORDER BY recorded_at DESC, sequence DESC LIMIT 1",
    [instant],
  );
  return BigInt(rows[0]?.sequence ?? 0);
}

/** Throws OutOfRange for a place to resume that the log hasn't come to. */
export function refuseAhead(afterSequence: bigint, newest: bigint): void {
  if (afterSequence <= newest) return;
  throw new OutOfRange(
    `afterSequence ${afterSequence} is ahead of this log, whose newest is ${newest}: it belongs to another service's ` +
      "log, or to a copy of the database that is gone; start again from 0",
    { newestSequence: String(newest) },
  );
}

/** Throws OutOfRange for a place to resume that retention has overtaken. */
export function refuseExpired(afterSequence: bigint, removed: bigint): void {
  if (afterSequence >= removed) return;
  throw new OutOfRange(
    `what comes after sequence ${afterSequence} isn't kept any more, up to sequence ${removed}: go on after ${removed}, ` +
      "or start again from the oldest that is kept",
    { oldestSequence: String(removed + 1n) },
  );
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

interface Bounds {
  newest: string;
  removed: string;
}

interface Row {
  /** Null in the row that stands for an empty page. */
  sequence: string | null;
  recordedAt: Date;
  publishedAt: Date | null;
  /** Null too when somebody has deleted the event itself. */
  envelope: CloudEvent | null;
}
