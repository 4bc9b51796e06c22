import type { Context } from "../context.ts";
import { patiently } from "../execution/database-patience.ts";
import { type HeldRun, RunLost } from "../execution/held-run.ts";
import { LogCut, type LoggedLine, type LogSize } from "./log-cut.ts";
import type { Run } from "../runs/run-row.ts";

const MAX_BATCH = 200;
/** How long a line may wait for others before it is written. */
const MAX_WAIT_MS = 500;
/** Lines that may be unwritten while the engine goes on; beyond, it waits. */
const MAX_UNWRITTEN = 2 * MAX_BATCH;

/** Both methods throw RunLost, or why the log can't be written, now or at a later call. */
export interface RunLog {
  /** Waits while too much is unwritten. */
  add(line: LoggedLine): Promise<void>;
  /** At the phase's end: returns once all that the log keeps is written. Until then the last lines of a flood aren't. */
  flush(): Promise<void>;
}

/**
 * Appends to a run's log in numbered batches, after what an executor before this one has written. It is bounded: see
 * {@link LogCut}. While the database is away lines wait, for as long as a lease lasts.
 */
export async function openRunLog(context: Context, { run }: Pick<HeldRun, "run">): Promise<RunLog> {
  const size = await logSize(context, run.id);
  const cut = new LogCut(size);
  let next = size.lines + 1;
  let waiting: string[] = [];
  let unwritten = 0;
  let timer: NodeJS.Timeout | undefined;
  let failure: { error: unknown } | undefined;
  let writing = Promise.resolve();

  function write(): void {
    clearTimeout(timer);
    timer = undefined;
    const lines = waiting;
    const first = next;
    waiting = [];
    next += lines.length;
    writing = writing
      .then(() =>
        failure || lines.length === 0 ? undefined : patiently(context, () => append(context, run, first, lines)),
      )
      .then(() => void (unwritten -= lines.length))
      .catch((error: unknown) => void (failure ??= { error }));
  }

  async function written(): Promise<void> {
    await writing;
    if (failure) throw failure.error;
  }

  function keep(lines: readonly string[]): void {
    waiting.push(...lines);
    unwritten += lines.length;
    if (waiting.length >= MAX_BATCH) write();
    else if (waiting.length > 0) timer ??= setTimeout(write, MAX_WAIT_MS);
  }

  return {
    async add(line) {
      keep(cut.take(line));
      if (failure || unwritten > MAX_UNWRITTEN) await written();
    },
    async flush() {
      keep(cut.end());
      write();
      await written();
    },
  };
}

async function logSize({ client }: Context, runId: string): Promise<LogSize> {
  const [size] = await client.$queryRaw<LogSize[]>`
    SELECT coalesce(max(number), 0) AS lines, coalesce(sum(octet_length(text)), 0)::int AS bytes
    FROM run_log_line WHERE run_id = ${runId}::uuid`;
  return size ?? { lines: 0, bytes: 0 };
}

/** Done twice it writes once, as when the answer to the first was lost. */
async function append({ pool }: Context, run: Run, first: number, lines: readonly string[]): Promise<void> {
  const { rowCount } = await pool.query(APPEND, [run.id, run.executorEpoch, first, lines]);
  if (rowCount === 0) throw new RunLost(run);
}

/** One row as long as the run is this executor's to speak of, also when its lines are there already. */
const APPEND = `
  WITH held AS (
    SELECT FROM provisioning_run
    WHERE id = $1 AND executor_epoch = $2 AND state IN ('PLANNING', 'APPLYING', 'CANCELLING', 'INDETERMINATE')
    FOR SHARE
  ), added AS (
    INSERT INTO run_log_line (run_id, number, text, at)
    SELECT $1, $3 + line.position - 1, line.text, clock_timestamp()
    FROM held, unnest($4::text[]) WITH ORDINALITY AS line (text, position)
    ON CONFLICT (run_id, number) DO NOTHING
  )
  SELECT FROM held`;
