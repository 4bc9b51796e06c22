import type { JsonValue } from "@bufbuild/protobuf";
import { type Facts, pointer } from "./compare.ts";
import type { Judgement } from "./health.ts";
import type { ObservedComponent } from "../observers/observer.ts";
import { observationFailure, type World } from "./world.ts";

/** What consumers hear of when it moves, apart from resources: one fact per path. */
export function factsOf(world: World, components: readonly ObservedComponent[], its: Judgement): Facts {
  const facts = new Map<string, JsonValue>([
    [pointer("health"), its.health],
    [pointer("healthReason"), its.healthReason],
    [pointer("currentReleaseId"), world.currentReleaseId],
    [pointer("observationFailure"), observationFailure(world)],
  ]);
  for (const { kind, declaredVersion, appliedVersion } of world.specifications) {
    facts.set(pointer("versions", kind, "declared"), declaredVersion);
    facts.set(pointer("versions", kind, "applied"), appliedVersion);
  }
  for (const { name, componentVersion, replicasDesired, replicasReady, health, healthReason } of components) {
    facts.set(pointer("components", name, "version"), componentVersion);
    facts.set(pointer("components", name, "replicasDesired"), replicasDesired);
    facts.set(pointer("components", name, "replicasReady"), replicasReady);
    facts.set(pointer("components", name, "health"), health);
    facts.set(pointer("components", name, "healthReason"), healthReason ?? null);
  }
  return facts;
}
