import type { Inventory } from "../../generated/prisma/client.ts";
import type { ServiceUnit } from "../context.ts";
import type { ObserverSettings } from "../observers/observer-settings.ts";

/** Those who look only where they are configured. The engine always does, and agents come by themselves. */
const dismissible = ["http", "kubernetes"] as const;

/**
 * Forgets the failures and the components of those who look no longer; what only they saw drift ends with the engine's
 * next look. The environment must be locked.
 */
export async function dismissObservers(
  { tx }: ServiceUnit,
  { id }: Inventory,
  settings: ObserverSettings,
): Promise<void> {
  const observer = { in: dismissible.filter((name) => settings[name] === undefined) };
  await tx.component.deleteMany({ where: { inventoryId: id, observer } });
  await tx.observerReport.deleteMany({ where: { inventoryId: id, observer } });
}
