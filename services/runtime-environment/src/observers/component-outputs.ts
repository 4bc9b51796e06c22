import type { JsonObject } from "@bufbuild/protobuf";
import { z } from "zod";
import { replicaHealth } from "../health.ts";
import type { ObservedComponent } from "./observer.ts";

const count = z.int().nonnegative();
const componentOutput = z.object({
  name: z.string().min(1).max(128),
  version: z.coerce.string().max(128).default(""),
  replicas: count.default(0),
  ready: count.optional(),
});

/**
 * Components as a program's `components` output lists them: `{ name, version, replicas, ready? }`. The engine sees what
 * it applied, not processes: without `ready` every replica counts as ready. Items of another shape are left out.
 */
export function componentOutputs(items: readonly JsonObject[]): ObservedComponent[] {
  return items.flatMap((item) => {
    const parsed = componentOutput.safeParse(item);
    if (!parsed.success) return [];
    const { name, version, replicas: replicasDesired, ready: replicasReady = replicasDesired } = parsed.data;
    const replicas = { replicasDesired, replicasReady };
    return [{ name, componentVersion: version, ...replicas, health: replicaHealth(replicas) }];
  });
}
