import { type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { type Filter, pageAfter, pageToken } from "@runtime-cloud/eventing/page";

/** The most that a request may ask for, and what one that names no size gets. */
const MAX_PAGE_SIZE = 1_000;
/** Half of what a message may have; the first item of a page may be larger. */
const MAX_PAGE_BYTES = 2 * 1_024 * 1_024;
/** How many are read at once, so that no more than these are held beyond a page that is full. */
const BATCH = 250;
/** An ordinal is an `int4`. */
const ORDINAL = /^\d{1,9}$/;

export interface OrdinalPage<Desc extends DescMessage> {
  request: { pageSize: number; pageToken: string };
  filter: Filter;
  schema: Desc;
  /** The items from an ordinal on, as many as asked for as long as there are more. */
  read(from: number, count: number): Promise<MessageShape<Desc>[]>;
}

/**
 * One page of items that are numbered from 0 without gaps, bounded by their number and by their size, and the token of
 * the next one: empty on the last. Throws InvalidInput for a token that is none of this list's.
 */
export async function ordinalPage<Desc extends DescMessage>({ request, filter, schema, read }: OrdinalPage<Desc>) {
  const after = pageAfter(request.pageToken, filter, ORDINAL);
  const start = after === undefined ? 0 : Number(after) + 1;
  const most = request.pageSize || MAX_PAGE_SIZE;
  const items: MessageShape<Desc>[] = [];
  let bytes = 0;
  for (;;) {
    const count = Math.min(BATCH, most + 1 - items.length);
    const batch = await read(start + items.length, count);
    for (const item of batch) {
      bytes += toBinary(schema, item).length;
      if (items.length === most || (items.length > 0 && bytes > MAX_PAGE_BYTES)) {
        return { items, nextPageToken: pageToken(String(start + items.length - 1), filter) };
      }
      items.push(item);
    }
    if (batch.length < count) return { items, nextPageToken: "" };
  }
}
