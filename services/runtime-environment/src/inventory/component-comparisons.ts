import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ComponentComparisonSchema } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import { Health } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { ENGINE, type ObservedComponent } from "../observers/observer.ts";
import { reportOf, type World } from "./world.ts";

/** Each component as it was applied beside how those see it who look, by name. */
export function componentComparisons(
  world: Pick<World, "components" | "reports">,
): MessageInitShape<typeof ComponentComparisonSchema>[] {
  const names = [...new Set(world.components.map(({ name }) => name))].sort();
  return names.map((name) => {
    const all = world.components.filter((component) => component.name === name);
    const applied = all.find(({ observer }) => observer === ENGINE);
    const seen = all.filter(({ observer }) => observer !== ENGINE).map((component) => seenBy(world, component));
    return {
      name,
      seen,
      ...(applied && { applied: { version: applied.componentVersion, replicas: applied.replicasDesired } }),
    };
  });
}

export function componentMessage(component: ObservedComponent) {
  const { name, componentVersion: version, replicasDesired, replicasReady, health, healthReason = null } = component;
  const fields = { name, version, replicasDesired, replicasReady, health: Health[health] };
  return { ...fields, ...(healthReason !== null && { healthReason }) };
}

function seenBy(world: Pick<World, "reports">, component: World["components"][number]) {
  const { observer } = component;
  const observedAt = reportOf(world, observer)?.observedAt;
  return {
    observer,
    component: componentMessage(component),
    ...(observedAt && { observedAt: timestampFromDate(observedAt) }),
  };
}
