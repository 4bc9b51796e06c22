import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { watcherLimit } from "@runtime-cloud/eventing/event-log/watcher-limit";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Context } from "../context.ts";
import { isAtRest } from "../runs/run-end.ts";
import type { RunNews, RunNewsWanted } from "./run-news.ts";
import { findRun } from "../runs/runs.ts";

/** Of one page; a message may have 4 MiB. */
const MAX_PAGE_LINES = 500;
const MAX_PAGE_BYTES = 1_024 * 1_024;

/**
 * TailProvisioningLog: the log's lines after a number, in order, without a gap or a repeat, so whoever was cut off goes
 * on after the last line that it has. With `follow` it stays as long as an executor works on the run or is about to: a
 * run that is over, that awaits its approval or that is INDETERMINATE ends it, once all its lines are sent. A slow reader
 * costs one page. Throws NotFound for another tenant's run, Exhausted when the process has all the readers that it may
 * have.
 */
export function tailLog(
  { client }: Context,
  news: RunNews,
): ServiceImpl<typeof IaCProvisioningService>["tailProvisioningLog"] {
  const readers = watcherLimit();

  return async function* ({ provisioningRunId, afterNumber, follow }, call) {
    const { tenantId } = principalOf(call);
    const leave = readers.enter(call.signal);
    try {
      const { id: runId, state } = await findRun(client, tenantId, provisioningRunId);
      let after = afterNumber;
      // Whoever was at rest before its lines are read says no more.
      let ends = !follow || isAtRest(state);
      for (;;) {
        for await (const page of pagesAfter(client, runId, after)) {
          yield { lines: page.map(({ at, ...line }) => ({ ...line, at: timestampFromDate(at) })) };
          if (call.signal.aborted) return;
          after = page.at(-1)?.number ?? after;
        }
        if (ends) return;
        const glimpse = await news.next(linesOrRest(runId, after), call.signal);
        if (!glimpse) return;
        ends = isAtRest(glimpse.state);
      }
    } finally {
      leave();
    }
  };
}

interface Line {
  number: number;
  text: string;
  at: Date;
}

function linesOrRest(id: string, after: number): RunNewsWanted {
  return { id, progress: false, isNews: ({ lastLine, state }) => lastLine > after || isAtRest(state) };
}

/** The lines that are there, none of the pages empty. */
async function* pagesAfter(client: Context["client"], runId: string, from: number): AsyncGenerator<Line[], void> {
  let after = from;
  for (;;) {
    const page = await readPage(client, runId, after);
    const last = page.at(-1);
    if (!last) return;
    yield page;
    after = last.number;
  }
}

/** One line at least, if there is one. */
function readPage(client: Context["client"], runId: string, after: number): Promise<Line[]> {
  return client.$queryRaw<Line[]>`
    SELECT number, text, at FROM (
      SELECT number, text, at, sum(octet_length(text)) OVER (ORDER BY number) - octet_length(text) AS bytes_before
      FROM run_log_line
      WHERE run_id = ${runId}::uuid AND number > ${after}
      ORDER BY number
      LIMIT ${MAX_PAGE_LINES}
    ) line
    WHERE bytes_before < ${MAX_PAGE_BYTES}
    ORDER BY number`;
}
