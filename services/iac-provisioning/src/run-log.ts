import type { Context } from "./context.ts";
import { type HeldRun, RunLost } from "./held-run.ts";

/** How many lines a run's log keeps; the last one says that there were more. */
const MAX_LINES = 20_000;
const MAX_BATCH = 200;
/** How long a line may wait for others before it is written. */
const MAX_WAIT_MS = 500;

export interface RunLog {
  /** Text without secrets, one line. Throws RunLost, now or at a later call. */
  add(line: string): Promise<void>;
  flush(): Promise<void>;
}

/** Appends to a run's log in numbered batches, after what an executor before this one has written. */
export async function openRunLog({ pool, client }: Context, { run }: HeldRun): Promise<RunLog> {
  const { _max } = await client.runLogLine.aggregate({ where: { runId: run.id }, _max: { number: true } });
  let written = _max.number ?? 0;
  let waiting: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  let writing = Promise.resolve();

  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const lines = waiting;
    waiting = [];
    writing = writing.then(() => write(lines));
    writing.catch(() => undefined); // said at the next call
    return writing;
  }

  async function write(lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    const { rowCount } = await pool.query(APPEND, [run.id, run.executorEpoch, written, lines]);
    if (rowCount === 0) throw new RunLost(run);
    written += lines.length;
  }

  return {
    flush,
    async add(line) {
      const number = written + waiting.length + 1;
      if (number > MAX_LINES) return;
      waiting.push(number === MAX_LINES ? "the log is cut here: it is longer than it may be" : line);
      if (waiting.length >= MAX_BATCH) return flush();
      timer ??= setTimeout(() => void flush(), MAX_WAIT_MS);
      await writing;
    },
  };
}

const APPEND = `
  WITH held AS (SELECT FROM provisioning_run WHERE id = $1 AND executor_epoch = $2 FOR SHARE)
  INSERT INTO run_log_line (run_id, number, text, at)
  SELECT $1, $3 + line.position, line.text, clock_timestamp()
  FROM held, unnest($4::text[]) WITH ORDINALITY AS line (text, position)`;
