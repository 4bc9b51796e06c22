import type { Health } from "../../generated/prisma/client.ts";

/** What an environment's health is judged by. */
export interface Signs {
  /** An observer's last look failed, wholly or in part. */
  failed: boolean;
  /** How many resources are there. */
  resources: number;
  /** How many applied resources are missing: those that a look saw again meanwhile aren't. */
  missing: number;
  components: readonly { health: Health }[];
}

/** From best to worst. */
const severity: readonly Health[] = ["HEALTHY", "PROGRESSING", "DEGRADED", "MISSING", "UNKNOWN"];

/** The worst of what is seen; UNKNOWN when somebody couldn't look, or when there is nothing to judge by. */
export function healthOf({ failed, resources, missing, components }: Signs): Health {
  if (failed || resources + missing + components.length === 0) return "UNKNOWN";
  return worst([...components.map(({ health }) => health), resourceHealth(resources, missing)]);
}

export function replicaHealth({ replicasDesired, replicasReady }: Replicas): Health {
  return replicasReady < replicasDesired ? "DEGRADED" : "HEALTHY";
}

function resourceHealth(resources: number, missing: number): Health {
  if (missing === 0) return "HEALTHY";
  return resources === 0 ? "MISSING" : "DEGRADED";
}

export function worst(all: readonly Health[]): Health {
  return all.reduce((a, b) => (severity.indexOf(b) > severity.indexOf(a) ? b : a), "HEALTHY");
}

interface Replicas {
  replicasDesired: number;
  replicasReady: number;
}
