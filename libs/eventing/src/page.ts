import { createHash } from "node:crypto";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import { z } from "zod";

/** Page size of a request that names none. */
export const DEFAULT_PAGE_SIZE = 50;
export const MAX_PAGE_SIZE = 500;

/** What a list was filtered by: a page token is good for the same filter only. */
export type Filter = Readonly<Record<string, string | number | boolean | readonly (string | number)[] | undefined>>;

/** How many rows to give: 0 means the default, and more than the most is the most. */
export function pageSize(requested: number): number {
  if (requested < 0) throw new InvalidInput([{ field: "pageSize", description: "must be 0 or more" }]);
  return Math.min(requested || DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
}

/** An opaque token for the rows after the one whose sort key is `after`. */
export function pageToken(after: string, filter: Filter): string {
  return Buffer.from(JSON.stringify({ after, filter: hashOf(filter) })).toString("base64url");
}

/** The sort keys of most lists. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** The sort keys of lists that are ordered by a name. */
export const NAME = /^[\x20-\x7e]{1,128}$/;
/** The sort keys of lists that are numbered. */
export const SEQUENCE = /^\d{1,18}$/;

/**
 * Where a page starts: after this sort key, or at the beginning when undefined. Throws InvalidInput, also for a token
 * that somebody made up: its key must look like one.
 */
export function pageAfter(token: string, filter: Filter, key = UUID): string | undefined {
  if (token === "") return undefined;
  const read = tokenSchema.safeParse(jsonOf(Buffer.from(token, "base64url").toString("utf8")));
  if (!read.success || !key.test(read.data.after))
    throw refusal("is no page token: use the nextPageToken of the page before, or leave it empty");
  if (read.data.filter !== hashOf(filter)) {
    throw refusal("belongs to a list with other filters: repeat those filters, or leave it empty");
  }
  return read.data.after;
}

const tokenSchema = z.object({ after: z.string(), filter: z.string() });

function refusal(description: string): InvalidInput {
  return new InvalidInput([{ field: "pageToken", description }]);
}

function hashOf(filter: Filter): string {
  const named = Object.entries(filter).filter(([, value]) => value !== undefined);
  const canonical = JSON.stringify(named.sort(([a], [b]) => (a < b ? -1 : 1)));
  return createHash("sha256").update(canonical).digest("base64url").slice(0, 16);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
