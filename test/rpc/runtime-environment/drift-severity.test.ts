import { expect, test } from "@jest/globals";
import { originOf } from "@runtime-cloud/runtime-environment/findings/finding-origin";
import { atLeast, severityOf } from "@runtime-cloud/runtime-environment/findings/severity";

test.each([
  ["RESOURCE_MISSING", "STAGING", null, "HIGH"],
  ["RESOURCE_MISSING", "PRODUCTION", null, "CRITICAL"],
  ["RESOURCE_UNMANAGED", "PRODUCTION", { id: "i-1" }, "MEDIUM"],
  ["ATTRIBUTE_CHANGED", "TEST", "x", "MEDIUM"],
  ["ATTRIBUTE_CHANGED", "PRODUCTION", "x", "HIGH"],
  ["VERSION_MISMATCH", "DEVELOPMENT", "1.3.9", "HIGH"],
  ["REPLICA_MISMATCH", "PRODUCTION", 1, "MEDIUM"],
  ["HEALTH_DEGRADED", "PRODUCTION", "DEGRADED", "HIGH"],
  ["HEALTH_DEGRADED", "DEVELOPMENT", "MISSING", "CRITICAL"],
] as const)("%s in %s with %j is %s", (kind, environmentClass, observed, severity) => {
  expect(severityOf({ kind, observed }, environmentClass)).toBe(severity);
});

test("a severity and worse leaves the milder ones out", () => {
  expect(atLeast("HIGH")).toEqual(["HIGH", "CRITICAL"]);
  expect(atLeast("LOW")).toEqual(["LOW", "MEDIUM", "HIGH", "CRITICAL"]);
});

test("the specification has moved too while a version of that kind waits to be applied", () => {
  const pending = { kind: "RELEASE" as const, declaredVersion: 3, appliedVersion: 2 };
  const settled = { kind: "BASELINE" as const, declaredVersion: 1, appliedVersion: 1 };
  expect(originOf("RELEASE", [settled, pending])).toBe("WORLD_AND_SPECIFICATION");
  expect(originOf("BASELINE", [settled, pending])).toBe("WORLD");
  expect(originOf("WORKER_POOL", [settled, pending])).toBe("WORLD");
});
