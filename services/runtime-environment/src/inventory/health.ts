import type { Health } from "../../generated/prisma/client.ts";
import type { ObservedComponent } from "../observers/observer.ts";
import { storableText } from "../observers/storable.ts";
import { inShort } from "../observers/in-short.ts";

/** How something is, and why it isn't HEALTHY; null when it is. */
export interface Judgement {
  health: Health;
  healthReason: string | null;
}

/** What an environment's health is judged by. */
export interface Signs {
  /** Why an observer's last look failed, wholly or in part; null: none did. */
  failure: string | null;
  /** How many resources are there. */
  resources: number;
  /** How many applied resources are missing: those that a look saw again meanwhile aren't. */
  missing: number;
  components: readonly Component[];
}

/** From best to worst. */
const severity: readonly Health[] = ["HEALTHY", "PROGRESSING", "DEGRADED", "MISSING", "UNKNOWN"];

/** The worst of what is seen; UNKNOWN when somebody couldn't look, or when there is nothing to judge by. */
export function healthOf({ failure, resources, missing, components }: Signs): Judgement {
  if (failure !== null) return { health: "UNKNOWN", healthReason: failure };
  if (resources + missing + components.length === 0) return { health: "UNKNOWN", healthReason: NOTHING_SEEN };
  const claims = [
    ...components.map(({ name, health, healthReason }) => ({ health, reason: `${name}: ${healthReason ?? health}` })),
    { health: resourceHealth(resources, missing), reason: `applied resources that are missing: ${missing}` },
  ];
  const health = worst(claims.map((claim) => claim.health));
  if (health === "HEALTHY") return { health, healthReason: null };
  const reasons = claims.filter((claim) => claim.health === health).map(({ reason }) => reason);
  return { health, healthReason: inShort(reasons) };
}

const NOTHING_SEEN = "no component and no resource has been seen yet";

export function replicaHealth({ replicasDesired, replicasReady }: Replicas): Health {
  return replicasReady < replicasDesired ? "DEGRADED" : "HEALTHY";
}

/** Longest text of why a component isn't HEALTHY. */
const MAX_REASON = 300;

/** Why a component that `observer` sees isn't HEALTHY, whether or not it was told. */
export function healthReasonOf({ health, healthReason, ...replicas }: ObservedComponent, observer: string) {
  if (health === "HEALTHY") return null;
  if (healthReason) return storableText(healthReason, MAX_REASON);
  const { replicasDesired, replicasReady } = replicas;
  if (replicasReady < replicasDesired) return readyReplicas(replicas);
  return `${observer} reports ${health}`;
}

export function readyReplicas({ replicasDesired, replicasReady }: Replicas): string {
  return `${replicasReady} of ${replicasDesired} replicas ready`;
}

function resourceHealth(resources: number, missing: number): Health {
  if (missing === 0) return "HEALTHY";
  return resources === 0 ? "MISSING" : "DEGRADED";
}

export function worst(all: readonly Health[]): Health {
  return all.reduce((a, b) => (severity.indexOf(b) > severity.indexOf(a) ? b : a), "HEALTHY");
}

type Component = Pick<ObservedComponent, "name" | "health" | "healthReason">;

interface Replicas {
  replicasDesired: number;
  replicasReady: number;
}
