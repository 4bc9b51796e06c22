import { expect, test } from "@jest/globals";
import type { JsonValue } from "@bufbuild/protobuf";
import { compare } from "@runtime-cloud/runtime-environment/inventory/compare";
import {
  resourceDifferences,
  resourcesDigest,
} from "@runtime-cloud/runtime-environment/inventory/resource-differences";
import type { KnownResource } from "@runtime-cloud/runtime-environment/inventory/world";

const resource = (address: string, resourceId: string | null = "1"): KnownResource => ({
  kind: "BASELINE",
  address,
  resourceType: "terraform_data",
  resourceId,
});
const value = (resourceId: string) => ({ resourceType: "terraform_data", resourceId });

test("only what is new, different or gone is told and written", () => {
  const known = ["a", "b", "c"].map((address) => resource(address));
  const seen = [resource("d"), resource("a"), resource("b", "2")];
  expect(resourceDifferences(known, seen)).toEqual({
    moves: [
      { path: "/resources/BASELINE/d", from: null, to: value("1") },
      { path: "/resources/BASELINE/b", from: value("1"), to: value("2") },
      { path: "/resources/BASELINE/c", from: value("1"), to: null },
    ],
    written: [resource("d"), resource("b", "2")],
    gone: [resource("c")],
  });
});

test("the same resources have the same digest in any order, and others another one", () => {
  const resources = ["a", "b/c", "d"].map((address) => resource(address));
  expect(resourcesDigest([...resources].reverse())).toBe(resourcesDigest(resources));
  const others = [
    resources.slice(1),
    [...resources, resource("e")],
    resources.map((each) => ({ ...each, resourceId: null })),
  ];
  expect(new Set([resources, ...others].map(resourcesDigest)).size).toBe(4);
});

test("facts that come, move and go are told in the order of their paths; equal ones aren't", () => {
  const before = new Map<string, JsonValue>(Object.entries({ "/b": 1, "/c": { deep: [1] }, "/gone": "x" }));
  const after = new Map<string, JsonValue>(Object.entries({ "/c": { deep: [1] }, "/b": 2, "/a": "new" }));
  expect(compare(before, after)).toEqual([
    { path: "/a", from: null, to: "new" },
    { path: "/b", from: 1, to: 2 },
    { path: "/gone", from: "x", to: null },
  ]);
});
