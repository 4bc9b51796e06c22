import { expect, test } from "@jest/globals";
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, NAME, pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";

const KEY = "018f0000-0000-7000-8000-000000000007";

test("gives the default for 0, no more than the most, and refuses less than 0", () => {
  expect([pageSize(0), pageSize(7), pageSize(1_000_000)]).toEqual([DEFAULT_PAGE_SIZE, 7, MAX_PAGE_SIZE]);
  expect(() => pageSize(-1)).toThrow(/^pageSize: /);
});

test("starts where the page before ended, for the same filter however it is written", () => {
  const token = pageToken(KEY, { tenantId: "tenant-a", states: ["ACTIVE"], projectId: undefined });
  expect(pageAfter(token, { states: ["ACTIVE"], tenantId: "tenant-a" })).toBe(KEY);
  expect(pageAfter("", {})).toBeUndefined();
});

test("refuses a token of another list, and what is no token", () => {
  const token = pageToken(KEY, { tenantId: "tenant-a" });
  expect(() => pageAfter(token, { tenantId: "tenant-b" })).toThrow(/^pageToken: belongs to a list with other filters/);
  for (const noToken of ["nonsense", "bnVsbA", "e30", `${token}x`]) {
    expect(() => pageAfter(noToken, { tenantId: "tenant-a" })).toThrow(
      /^pageToken: is no page token|^pageToken: belongs/,
    );
  }
});

test("refuses a token that somebody made up around a key of another kind", () => {
  const madeUp = pageToken("'; DROP TABLE", {});
  expect(() => pageAfter(madeUp, {})).toThrow(/^pageToken: is no page token/);
  expect(pageAfter(pageToken("pool-1", {}), {}, NAME)).toBe("pool-1");
  expect(() => pageAfter(pageToken("a\u0000b", {}), {}, NAME)).toThrow(/^pageToken: is no page token/);
});
