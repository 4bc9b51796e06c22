import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import type pg from "pg";
import { logBounds, sequenceBefore, type Stretch } from "./event-log.ts";

/** From one instant, itself included, to another; unset: from the log's start, to its end as it is now. */
export interface Period {
  since?: Timestamp | undefined;
  until?: Timestamp | undefined;
}

/** The stretch of the log that was recorded in a period. Throws InvalidInput for a period that can't be. */
export async function recordedBetween(pool: pg.Pool, period: Period): Promise<Stretch> {
  const since = instantOf("since", period.since);
  const until = instantOf("until", period.until);
  if (since && until && until <= since) throw refusal("until", "must be later than since");
  const { newest } = await logBounds(pool);
  return {
    above: since ? await sequenceBefore(pool, since) : 0n,
    below: (until ? await sequenceBefore(pool, until) : newest) + 1n,
  };
}

/** The first instant that has five digits in its year, which the database can't read. */
const TOO_LATE_SECONDS = 253_402_300_800n;

function instantOf(field: string, timestamp: Timestamp | undefined): Date | undefined {
  if (!timestamp) return undefined;
  if (timestamp.seconds >= 0n && timestamp.seconds < TOO_LATE_SECONDS) return timestampDate(timestamp);
  throw refusal(field, "must lie between the years 1970 and 9999");
}

function refusal(field: string, description: string): InvalidInput {
  return new InvalidInput([{ field, description }]);
}
