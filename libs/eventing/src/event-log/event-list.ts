import { toBinary } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type ListEventsRequest,
  type LoggedEvent,
  LoggedEventSchema,
} from "@runtime-cloud/contracts/runtimecloud/eventlog/v1/events_pb";
import type pg from "pg";
import { LOG_PAGE, readLog, type Stretch } from "./event-log.ts";
import { loggedEvent } from "./logged-event.ts";
import { type Filter, pageAfter, pageSize, pageToken, SEQUENCE } from "../page.ts";
import { recordedBetween } from "./recorded-between.ts";

/** Half of what a message may have, since the same page is larger as JSON. */
const MAX_PAGE_BYTES = 2 * 1_024 * 1_024;
/** How often one call looks for matches before it gives what it has, and a token to go on with. */
const MAX_LOOKS = 20;

/** Whose log it is, and whose events of it: `tenantId` undefined means everyone's. */
interface View {
  producer: string;
  tenantId: string | undefined;
}

/** A page of the log. */
export async function listEvents(pool: pg.Pool, request: ListEventsRequest, view: View) {
  const { topics, subject, newestFirst } = request;
  const { tenantId } = view;
  const asked = filterOf(request, view);
  const token = pageAfter(request.pageToken, asked, SEQUENCE);
  const cursor = token === undefined || newestFirst ? undefined : BigInt(token);
  const size = pageSize(request.pageSize);

  const events: LoggedEvent[] = [];
  let rest = goOn(await recordedBetween(pool, request), token, newestFirst);
  for (let looks = 0, bytes = 0; rest && events.length < size && looks < MAX_LOOKS; looks += 1) {
    const limit = Math.min(LOG_PAGE, size - events.length);
    const page = await readLog(pool, { topics, subject, tenantId }, rest, {
      limit,
      newestFirst,
      ...(cursor !== undefined && looks === 0 && { cursor }),
    });
    for (const event of page.entries.map(loggedEvent)) {
      bytes += toBinary(LoggedEventSchema, event).byteLength;
      if (bytes > MAX_PAGE_BYTES && events.length > 0) return answer(events, rest);
      events.push(event);
      rest = newestFirst ? { ...rest, below: event.sequence } : { ...rest, above: event.sequence };
    }
    rest = page.rest;
  }
  return answer(events, rest);

  function answer(found: LoggedEvent[], left: Stretch | undefined) {
    const after = newestFirst ? left?.below : left?.above;
    return { events: found, nextPageToken: after === undefined ? "" : pageToken(String(after), asked) };
  }
}

/** What is left of a stretch for the page that a token names. */
function goOn(stretch: Stretch, token: string | undefined, newestFirst: boolean): Stretch | undefined {
  if (token === undefined) return stretch;
  const left = newestFirst ? { ...stretch, below: BigInt(token) } : { ...stretch, above: BigInt(token) };
  return left.above + 1n < left.below ? left : undefined;
}

function filterOf({ topics, subject, since, until, newestFirst }: ListEventsRequest, view: View): Filter {
  return {
    topics: [...topics].sort(),
    subject,
    since: since && written(since),
    until: until && written(until),
    newestFirst,
    ...view,
  };
}

function written({ seconds, nanos }: Timestamp): string {
  return `${seconds}.${nanos}`;
}
