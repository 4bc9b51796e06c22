import { type Filter, pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import { z } from "zod";

const uuid = z.guid();

/** How to read one page of a list, newest first: ids grow with time. A row more than the page tells of a next one. */
export function newestFirst(request: { pageSize: number; pageToken: string }, filter: Filter) {
  const after = pageAfter(request.pageToken, filter);
  if (after !== undefined && !uuid.safeParse(after).success) {
    throw new InvalidInput([{ field: "pageToken", description: "is no page token of this list" }]);
  }
  return {
    take: pageSize(request.pageSize) + 1,
    orderBy: { id: "desc" as const },
    older: after === undefined ? {} : { id: { lt: after } },
  };
}

/** What of the rows read is the page, and the token of the next one: empty on the last. */
export function pageOf<Row extends { id: string }>(rows: readonly Row[], take: number, filter: Filter) {
  const page = rows.slice(0, take - 1);
  const last = page.at(-1);
  return { page, nextPageToken: last && rows.length === take ? pageToken(last.id, filter) : "" };
}
