import { deadlineCause } from "@runtime-cloud/eventing/cause";
import type { DeadlineResult } from "@runtime-cloud/eventing/deadlines";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import type { Context, ServiceUnit } from "./context.ts";

/*
 * What is due is read by the database's clock as of the statement. `clock_timestamp()` moves while the statement runs, so
 * no index helps to compare with it.
 */

/** How many rows one run of a deadline ends. */
export const DUE_BATCH = 50;

/**
 * Ends each due row in a unit of its own, so one that can't be ended holds no other. `end` answers false for a row that
 * somebody else ended meanwhile.
 */
export async function endEach<Due extends { id: string }>(
  context: Context,
  kind: string,
  due: readonly Due[],
  end: (unit: ServiceUnit, row: Due) => Promise<boolean>,
): Promise<DeadlineResult> {
  const ended: string[] = [];
  for (const row of due) {
    try {
      if (await unitOfWork(context, deadlineCause(kind, context.newId), (unit) => end(unit, row))) ended.push(row.id);
    } catch (err) {
      context.logger.error({ err, kind, id: row.id }, "a due row can't be ended; it is tried again");
    }
  }
  return { ended, more: due.length === DUE_BATCH && ended.length > 0 };
}
