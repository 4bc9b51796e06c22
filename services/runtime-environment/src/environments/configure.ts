import type { JsonValue } from "@bufbuild/protobuf";
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { ConfigureEnvironmentRequest } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import {
  FindingGrouping as GroupingCode,
  ReconciliationDirection as DirectionCode,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { secondsAfter } from "@runtime-cloud/eventing/database-clock";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { type FieldViolation, InvalidInput } from "@runtime-cloud/service-kit/errors";
import { FindingGrouping, type Inventory, ReconciliationDirection } from "../../generated/prisma/client.ts";
import { compare, type Facts, pointer } from "../inventory/compare.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { dismissObservers } from "../observing/dismiss-observers.ts";
import { recordChange } from "../inventory/inventory-changes.ts";
import { knownClusters } from "../observers/kubernetes/kubernetes-clusters.ts";
import { observerSettings, observersOf, type ObserverSettings } from "../observers/observer-settings.ts";
import { observerViolations } from "../observers/observer-violations.ts";
import { firstLook, lookSoon } from "../observing/schedule.ts";

/** How an environment is observed, and what is proposed by itself; what a request leaves as it was isn't there. */
export type Configuration = Pick<Inventory, "observeSeconds" | "staleAfterSeconds" | "proposeAfterSeconds"> &
  Partial<Pick<Inventory, "proposeDirection" | "grouping">> & { observers?: ObserverSettings };

/** The configuration in a request. Throws InvalidInput for what can't work, by field. */
export async function configurationOf(
  context: Installed,
  tenantId: string,
  request: ConfigureEnvironmentRequest,
): Promise<Configuration> {
  const observeSeconds = secondsOf(request.observeEvery);
  const staleAfterSeconds = secondsOf(request.staleAfter);
  const observers = request.observers && observersOf(request.observers);
  const violations = [
    ...(staleAfterSeconds > observeSeconds ? [] : [alwaysStale(observeSeconds)]),
    ...(observers ? await violationsOf(observers, context, tenantId) : []),
  ];
  if (violations.length > 0) throw new InvalidInput(violations);
  const proposeDirection = enumNamed(ReconciliationDirection, DirectionCode[request.proposeDirection]);
  const grouping = enumNamed(FindingGrouping, GroupingCode[request.grouping]);
  return {
    ...{ observeSeconds, staleAfterSeconds },
    proposeAfterSeconds: request.proposeAfter ? secondsOf(request.proposeAfter) : null,
    ...(proposeDirection && { proposeDirection }),
    ...(grouping && { grouping }),
    ...(observers && { observers }),
  };
}

/**
 * Configures an environment, which must be locked. What was seen last is fresh for as long as it says from now on; who
 * no longer looks is forgotten, and those who do look soon.
 */
export async function configure(
  unit: ServiceUnit,
  context: Context,
  inventory: Inventory,
  configuration: Configuration,
): Promise<Inventory> {
  const { id, state, observedAt } = inventory;
  const { observeSeconds, staleAfterSeconds, observers } = configuration;
  const observeAt = await firstLook(unit.tx, id, observeSeconds);
  const seenAt = state === "FRESH" ? observedAt : null;
  const staleAt = seenAt ? secondsAfter(seenAt, staleAfterSeconds) : inventory.staleAt;
  const data = { ...configuration, observeAt, staleAt };
  const configured = await unit.tx.inventory.update({ where: { id }, data });
  unit.after(() => context.arm("observation", observeAt));
  if (staleAt) unit.after(() => context.arm("staleness", staleAt));
  const moves = compare(configurationFacts(inventory), configurationFacts(configured));
  if (observers && moves.some(({ path }) => path.startsWith(pointer("observers")))) {
    await dismissObservers(unit, inventory, observers);
    await lookSoon(unit, context, id);
  }
  return recordChange(unit, configured, { moves });
}

async function violationsOf(
  observers: ObserverSettings,
  { settings, kubernetes }: Installed,
  tenantId: string,
): Promise<FieldViolation[]> {
  const cluster = observers.kubernetes?.cluster;
  const clusters = cluster === undefined ? [] : await knownClusters(settings, tenantId);
  const rule = { loopback: settings.HTTP_OBSERVER_LOOPBACK };
  const violations = observerViolations(observers, { clusters, rule });
  if (cluster === undefined || !clusters.includes(cluster)) return violations;
  const description = await kubernetes.clusters.problem(tenantId, cluster);
  return description === undefined
    ? violations
    : [...violations, { field: "observers.kubernetes.cluster", description }];
}

function configurationFacts(inventory: Inventory): Facts {
  const { http = null, kubernetes = null, push = null } = observerSettings(inventory.observers);
  return new Map<string, JsonValue>([
    [pointer("observeSeconds"), inventory.observeSeconds],
    [pointer("staleAfterSeconds"), inventory.staleAfterSeconds],
    [pointer("proposeAfterSeconds"), inventory.proposeAfterSeconds],
    [pointer("proposeDirection"), inventory.proposeDirection],
    [pointer("grouping"), inventory.grouping],
    [pointer("observers", "http"), http],
    [pointer("observers", "kubernetes"), kubernetes],
    [pointer("observers", "push"), push],
  ]);
}

function alwaysStale(observeSeconds: number): FieldViolation {
  const description = `must be longer than observeEvery (${observeSeconds} s), or the environment is stale between two looks`;
  return { field: "staleAfter", description };
}

function secondsOf(duration: Duration | undefined): number {
  return duration ? Math.ceil(durationMs(duration) / 1_000) : 0;
}

type Installed = Pick<Context, "settings" | "kubernetes">;
