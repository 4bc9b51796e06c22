import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Component, PushedObservation } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import { Health as HealthCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { Denied, type FieldViolation, InvalidInput } from "@runtime-cloud/service-kit/errors";
import { Health } from "../../../generated/prisma/client.ts";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { replicaHealth } from "../../inventory/health.ts";
import type { Observer } from "../observer.ts";
import type { PushSettings } from "../observer-settings.ts";
import { repeated } from "../observer-violations.ts";
import { isPrintable } from "../storable.ts";

/** How far an agent's clock may run ahead of ours. */
const MAX_AHEAD_MS = 60_000;
/** How long an agent may keep what it saw. */
const MAX_AGE_HOURS = 24;
/** More replicas than this are a mistake. */
const MAX_REPLICAS = 100_000;
/** How many of the applied components an error names. */
const MAX_NAMED = 10;

/**
 * An agent that looked by itself and reported: it knows components, not specifications. Throws Denied when only others
 * may report for this environment, and InvalidInput for what can't be so.
 */
export function pushedObserver(pushed: PushedObservation, { now, subject, settings, appliedNames }: Pushing): Observer {
  refuseStrangers(subject, settings);
  const at = pushed.observedAt ? timestampDate(pushed.observedAt) : now;
  const violations = [
    ...outOfTime(at, now),
    ...repeated(
      pushed.components.map(({ name }) => name),
      (index) => `observation.components[${index}].name`,
    ),
    ...pushed.components.flatMap((component, index) =>
      componentViolations(component, `observation.components[${index}]`, appliedNames),
    ),
  ];
  if (violations.length > 0) throw new InvalidInput(violations);
  const components = pushed.components.map(
    ({ name, version, replicasDesired, replicasReady, health, healthReason = null }) => ({
      name,
      componentVersion: version,
      replicasDesired,
      replicasReady,
      health: enumNamed(Health, HealthCode[health]) ?? replicaHealth({ replicasDesired, replicasReady }),
      healthReason,
    }),
  );
  return { name: "push", observe: async () => ({ at, components }) };
}

function refuseStrangers(subject: string, settings: PushSettings | undefined): void {
  if (!settings || settings.agents.length === 0 || settings.agents.includes(subject)) return;
  throw new Denied(`${subject} is no agent of this environment: only those in observers.push.agents may report for it`);
}

function outOfTime(at: Date, now: Date): FieldViolation[] {
  const ahead = `is more than ${MAX_AHEAD_MS / 1_000} s ahead of this service's clock: set the agent's clock right`;
  const old = `is more than ${MAX_AGE_HOURS} h old: report what is there now`;
  const age = now.getTime() - at.getTime();
  const description = age < -MAX_AHEAD_MS ? ahead : age > MAX_AGE_HOURS * 3_600_000 ? old : undefined;
  return description === undefined ? [] : [{ field: "observation.observedAt", description }];
}

function componentViolations(component: Component, at: string, appliedNames: readonly string[]): FieldViolation[] {
  const { name, version, replicasDesired, replicasReady, healthReason = "" } = component;
  const violations: FieldViolation[] = [];
  for (const [field, text] of Object.entries({ name, version, healthReason })) {
    if (!isPrintable(text))
      violations.push({ field: `${at}.${field}`, description: "holds characters that don't show" });
  }
  for (const [field, count] of Object.entries({ replicasDesired, replicasReady })) {
    if (count <= MAX_REPLICAS) continue;
    violations.push({ field: `${at}.${field}`, description: `must be at most ${MAX_REPLICAS}` });
  }
  if (appliedNames.length > 0 && !appliedNames.includes(name)) {
    violations.push({ field: `${at}.name`, description: unknownComponent(name, appliedNames) });
  }
  return violations;
}

function unknownComponent(name: string, applied: readonly string[]): string {
  const more = applied.length > MAX_NAMED ? " and others" : "";
  return `names "${name}", which nothing that is applied here names: ${applied.slice(0, MAX_NAMED).join(", ")}${more} are known`;
}

interface Pushing {
  now: Date;
  /** Whose token it came with. */
  subject: string;
  /** Unset: whoever may observe may report. */
  settings: PushSettings | undefined;
  /** The components that the applied specifications name; without any, all are taken. */
  appliedNames: readonly string[];
}
