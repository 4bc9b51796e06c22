import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { secondsAfter } from "@runtime-cloud/eventing/database-clock";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";

/** How far ahead a suppression may end: what is expected for longer belongs into the specification. */
const MAX_DAYS = 365;
const DAY_SECONDS = 86_400;

/** When a suppression ends. Throws InvalidInput for an instant that has passed, or is too far ahead. */
export function suppressionEnd(until: Timestamp | undefined, now: Date): Date {
  const instant = until ? timestampDate(until) : now;
  if (instant <= now) throw refusal(`is not in the future: it is ${now.toISOString()} now`);
  const latest = secondsAfter(now, MAX_DAYS * DAY_SECONDS);
  if (instant <= latest) return instant;
  throw refusal(`is more than ${MAX_DAYS} days ahead: end it by ${latest.toISOString()}, and suppress it again then`);
}

function refusal(description: string): InvalidInput {
  return new InvalidInput([{ field: "until", description }]);
}
