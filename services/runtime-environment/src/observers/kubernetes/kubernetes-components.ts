import { workloadHealth } from "./kubernetes-health.ts";
import { versionOf } from "./kubernetes-version.ts";
import { replicasOf, type Workload } from "./kubernetes-workload.ts";
import type { ObservedComponent } from "../observer.ts";
import { storableText } from "../storable.ts";

const NAME_LABEL = "app.kubernetes.io/name";
const MAX_TEXT = 128;

/** One component for each workload, each under a name of its own. */
export function componentsOf(workloads: readonly Workload[]): ObservedComponent[] {
  const taken = new Set<string>();
  return [...workloads].sort(byAge).map((workload) => {
    const name = namesOf(workload).find((each) => !taken.has(each)) ?? "";
    taken.add(name);
    const { desired, ready } = replicasOf(workload);
    return {
      name,
      componentVersion: storableText(versionOf(workload), MAX_TEXT),
      replicasDesired: desired,
      replicasReady: ready,
      ...workloadHealth(workload),
    };
  });
}

/**
 * What a workload may be called: as its label says, by its own name, or, where another kind has that too, as in
 * `daemonset/agent`. The oldest one of a name has it, so that a canary doesn't take its component's name away.
 */
function namesOf({ kind, object }: Workload): string[] {
  const own = object.metadata?.name ?? "";
  const names = [object.metadata?.labels?.[NAME_LABEL] ?? own, own, `${kind.toLowerCase()}/${own}`];
  return names.map((name) => storableText(name, MAX_TEXT));
}

function byAge(a: Workload, b: Workload): number {
  const age = createdAt(a) - createdAt(b);
  return age === 0 ? namesOf(a).join().localeCompare(namesOf(b).join()) : age;
}

function createdAt({ object }: Workload): number {
  return object.metadata?.creationTimestamp?.getTime() ?? 0;
}
