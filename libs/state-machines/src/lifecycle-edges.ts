import type { AnyStateMachine } from "xstate";
import { capacityLease } from "./capacity-lease.ts";
import { deploymentSpecification } from "./deployment-specification.ts";
import { driftFinding } from "./drift-finding.ts";
import { provisioningRun } from "./provisioning-run.ts";
import { quota } from "./quota.ts";
import { reconciliationProposal } from "./reconciliation-proposal.ts";
import { runtimeInventory } from "./runtime-inventory.ts";
import { birthEvents, initialState, transitionTable } from "./transition-table.ts";
import { workerPool } from "./worker-pool.ts";

export type ServiceName = "iac-provisioning" | "execution-capacity" | "runtime-environment";

/** A row of a service's `lifecycle_edge` table. */
export interface LifecycleEdge {
  aggregate: string;
  fromState: string;
  event: string;
  toState: string;
}

/** The state before creation, in UML's notation. */
export const UNBORN = "[*]";
export const CREATE = "create";

/** The machines whose aggregates each service is authoritative for. */
export const machinesOf: Record<ServiceName, readonly AnyStateMachine[]> = {
  "iac-provisioning": [deploymentSpecification, provisioningRun],
  "execution-capacity": [workerPool, quota, capacityLease],
  "runtime-environment": [runtimeInventory, driftFinding, reconciliationProposal],
};

/** Every transition that the service's machines allow, each once; its database holds the same. */
export function lifecycleEdges(service: ServiceName): LifecycleEdge[] {
  return machinesOf[service].flatMap((machine) => {
    const edges = new Map<string, LifecycleEdge>();
    const add = (fromState: string, event: string, toState: string) =>
      edges.set(`${fromState} ${event} ${toState}`, { aggregate: machine.id, fromState, event, toState });
    add(UNBORN, CREATE, initialState(machine));
    const births = birthEvents(machine);
    for (const { from, event, to } of transitionTable(machine)) {
      add(from, event, to);
      if (from === initialState(machine) && births.includes(event)) add(UNBORN, event, to);
    }
    return [...edges.values()];
  });
}
