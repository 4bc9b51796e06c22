import type { JsonObject } from "@bufbuild/protobuf";
import { z } from "zod";
import { replicaHealth } from "../../inventory/health.ts";
import { MAX_COMPONENTS, type ObservedComponent } from "../observer.ts";
import { isPrintable } from "../storable.ts";

const count = z.int().nonnegative();
/** One of another shape is as none: whoever asks it would only say that it is no URL. */
const url = z.string().min(1).max(2_000).nullable().catch(null);
const componentOutput = z.object({
  name: z.string().min(1).max(128).refine(isPrintable),
  version: z.coerce.string().max(128).refine(isPrintable).default(""),
  replicas: count.default(0),
  ready: count.optional(),
  healthUrl: url.default(null),
  versionUrl: url.default(null),
});

/**
 * Components as programs' `components` outputs list them: `{ name, version, replicas, ready?, healthUrl?, versionUrl? }`,
 * MAX_COMPONENTS at most. The engine sees what it applied, not processes: without `ready` every replica counts as
 * ready. Items of another shape are left out; of two with one name the later is the component.
 */
export function componentOutputs(items: readonly JsonObject[]): ObservedComponent[] {
  const byName = new Map<string, ObservedComponent>();
  for (const item of items) {
    const { success, data } = componentOutput.safeParse(item);
    if (success && (byName.has(data.name) || byName.size < MAX_COMPONENTS)) byName.set(data.name, observed(data));
  }
  return [...byName.values()];
}

function observed(output: z.output<typeof componentOutput>): ObservedComponent {
  const { name, version, replicas: replicasDesired, ready: replicasReady = replicasDesired, ...urls } = output;
  const replicas = { replicasDesired, replicasReady };
  return { name, componentVersion: version, ...replicas, health: replicaHealth(replicas), ...urls };
}
