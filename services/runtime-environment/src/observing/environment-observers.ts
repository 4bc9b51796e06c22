import type { Inventory } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { engineObserver } from "../observers/engine/engine-observer.ts";
import { httpObserver } from "../observers/http/http-observer.ts";
import { kubernetesObserver } from "../observers/kubernetes/kubernetes-observer.ts";
import { ENGINE, type Observer } from "../observers/observer.ts";
import { observerSettings } from "../observers/observer-settings.ts";
import type { World } from "../inventory/world.ts";

/**
 * Those who look at an environment: the engine that applied it, always; others as it is configured. Agents that push
 * come by themselves. `components` are those that are known: the engine's say where they can be asked.
 */
export function environmentObservers(
  context: Context,
  inventory: Inventory,
  { components }: Pick<World, "components">,
): Observer[] {
  const { http, kubernetes } = observerSettings(inventory.observers);
  const { clock, settings } = context;
  const applied = components.filter(({ observer }) => observer === ENGINE);
  const rule = { loopback: settings.HTTP_OBSERVER_LOOPBACK };
  return [
    engineObserver(context),
    ...(http ? [httpObserver({ settings: http, applied, clock, rule })] : []),
    ...(kubernetes ? [kubernetesObserver(context, kubernetes)] : []),
  ];
}

/** Whether somebody is among those who look at an environment as it is configured. */
export function isObserver({ name }: Observer, inventory: Inventory): boolean {
  return [ENGINE, ...Object.keys(observerSettings(inventory.observers))].includes(name);
}

/** How long each may look, in milliseconds. An engine compares every resource with the world. */
const TIMEOUTS_MS: ReadonlyMap<string, number> = new Map([[ENGINE, 50_000]]);
const TIMEOUT_MS = 20_000;

export function timeoutOf({ name }: Observer): number {
  return TIMEOUTS_MS.get(name) ?? TIMEOUT_MS;
}
