import { type HttpAccess, httpGet } from "@runtime-cloud/runtime-environment/observers/http/http-get";
import {
  MAX_COMPONENTS,
  ObservationFailed,
  type ObservedComponent,
  type Observer,
} from "@runtime-cloud/runtime-environment/observers/observer";
import { isPrintable } from "@runtime-cloud/runtime-environment/observers/storable";
import { withinTime } from "@runtime-cloud/runtime-environment/observers/within-time";
import type { Clock } from "@runtime-cloud/service-kit/clock";
import { z } from "zod";

/** One process of a fleet as its manager lists it; without `running` the manager couldn't reach its machine. */
const listed = z.object({
  name: z.string().min(1).max(128).refine(isPrintable),
  version: z.string().max(128).refine(isPrintable),
  wanted: z.int().nonnegative(),
  running: z.int().nonnegative().optional(),
});
const list = z.array(listed).max(MAX_COMPONENTS);

/** Asks the manager of a fleet of machines what runs there: `[{ name, version, wanted, running? }]` as JSON. */
export function fleetObserver(url: string, { access, clock }: { access: HttpAccess; clock: Clock }): Observer {
  return {
    name: "fleet",
    async observe(_environment, look) {
      const at = clock.now();
      const { status, body } = await withinTime(look, (signal) => httpGet(url, { ...access, signal, withBody: true }));
      if (status !== 200) throw new ObservationFailed(`the manager answers with status ${status}`);
      const processes = parsed(body);
      const components = processes.flatMap(componentOf);
      const unseen = processes.filter(({ running }) => running === undefined).map(({ name }) => name);
      if (unseen.length === 0) return { at, components };
      return {
        at,
        components,
        unseen,
        failure: `the manager doesn't reach the machines of ${unseen.length} processes`,
      };
    },
  };
}

function componentOf({ name, version, wanted, running }: z.output<typeof listed>): ObservedComponent[] {
  if (running === undefined) return [];
  const health = running >= wanted ? "HEALTHY" : running > 0 ? "DEGRADED" : "MISSING";
  return [{ name, componentVersion: version, replicasDesired: wanted, replicasReady: running, health }];
}

function parsed(body: string): z.output<typeof list> {
  try {
    return list.parse(JSON.parse(body));
  } catch (cause) {
    throw new ObservationFailed("the manager's answer isn't the list that it should be", { cause });
  }
}
