import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { PushedObservation } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import { Health as HealthCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { type FieldViolation, InvalidInput } from "@runtime-cloud/service-kit/errors";
import { Health } from "../../generated/prisma/client.ts";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { replicaHealth } from "../health.ts";
import type { Observer } from "./observer.ts";

/** How far an agent's clock may run ahead of ours. */
const MAX_AHEAD_MS = 60_000;

/** An agent that looked by itself and reported: it knows components, not specifications. Throws InvalidInput. */
export function pushedObserver(pushed: PushedObservation, now: Date): Observer {
  const at = pushed.observedAt ? timestampDate(pushed.observedAt) : now;
  const violations = [...aheadOfTime(at, now), ...namedTwice(pushed)];
  if (violations.length > 0) throw new InvalidInput(violations);
  const components = pushed.components.map(({ name, version, replicasDesired, replicasReady, health }) => ({
    name,
    componentVersion: version,
    replicasDesired,
    replicasReady,
    health: enumNamed(Health, HealthCode[health]) ?? replicaHealth({ replicasDesired, replicasReady }),
  }));
  return { name: "push", observe: async () => ({ at, components }) };
}

function aheadOfTime(at: Date, now: Date): FieldViolation[] {
  if (at.getTime() <= now.getTime() + MAX_AHEAD_MS) return [];
  const description = `is more than ${MAX_AHEAD_MS / 1_000} s ahead of this service's clock: set the agent's clock right`;
  return [{ field: "observation.observedAt", description }];
}

function namedTwice({ components }: PushedObservation): FieldViolation[] {
  return components.flatMap(({ name }, index) => {
    if (components.findIndex((other) => other.name === name) === index) return [];
    return [{ field: `observation.components[${index}].name`, description: `names "${name}" a second time` }];
  });
}
