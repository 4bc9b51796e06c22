import { createHash } from "node:crypto";
import { type Move, pointer } from "./compare.ts";
import type { ObservedResource } from "../observers/observer.ts";
import type { KnownResource } from "./world.ts";

/** What became of an environment's resources between two looks. */
export interface ResourceDifferences {
  moves: readonly Move[];
  /** New ones, and those that are different. */
  written: readonly KnownResource[];
  gone: readonly KnownResource[];
}

/** Compares the resources of some kinds of specification, each with an address of its own within its kind. */
export function resourceDifferences(
  known: readonly KnownResource[],
  seen: readonly KnownResource[],
): ResourceDifferences {
  const before = new Map(known.map((resource) => [pathOf(resource), resource]));
  const after = new Map(seen.map((resource) => [pathOf(resource), resource]));
  const written = [...after].filter(([path, resource]) => !isSame(before.get(path), resource));
  const gone = [...before].filter(([path]) => !after.has(path));
  const moves = [
    ...written.map(([path, resource]) => ({ path, from: factOf(before.get(path)), to: factOf(resource) })),
    ...gone.map(([path, resource]) => ({ path, from: factOf(resource), to: null })),
  ];
  return { moves, written: written.map(([, resource]) => resource), gone: gone.map(([, resource]) => resource) };
}

/** Equal for two inspections that list the same resources, in whatever order. */
export function resourcesDigest(resources: readonly ObservedResource[]): string {
  const rows = resources.map((each) => JSON.stringify([each.address, each.resourceType, each.resourceId]));
  return `sha256:${createHash("sha256").update(rows.sort().join("\n")).digest("hex")}`;
}

function pathOf({ kind, address }: KnownResource): string {
  return pointer("resources", kind, address);
}

function isSame(before: KnownResource | undefined, after: KnownResource): boolean {
  return before?.resourceType === after.resourceType && before.resourceId === after.resourceId;
}

function factOf(resource: KnownResource | undefined) {
  return resource ? { resourceType: resource.resourceType, resourceId: resource.resourceId } : null;
}
