import type { EnvironmentClass } from "../../generated/prisma/client.ts";
import type { Settings } from "../settings.ts";

/** How long nothing of a new environment's drift changes before a proposal is made by itself; null: never. */
export function proposeAfter(settings: Settings, of: EnvironmentClass): number | null {
  return settings[`PROPOSE_AFTER_SECONDS_${of}`] ?? settings.PROPOSE_AFTER_SECONDS ?? null;
}
