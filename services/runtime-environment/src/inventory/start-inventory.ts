import { commit } from "@runtime-cloud/eventing/commit";
import { begin } from "@runtime-cloud/eventing/decision";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import { runtimeInventory } from "@runtime-cloud/state-machines/runtime-inventory";
import type { EnvironmentClass } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { firstLook } from "../observing/schedule.ts";
import { proposeAfter } from "../proposals/proposal-policy.ts";

/** Starts the inventory of an environment; one that has an inventory keeps it. */
export async function startInventory(unit: ServiceUnit, context: Context, created: Created): Promise<void> {
  const { id, tenantId } = created;
  const known = await unit.tx.inventory.findUnique({ where: { id }, select: { tenantId: true } });
  if (known?.tenantId === tenantId) return;
  if (known) {
    throw new InvalidInput([{ field: "environmentId", description: `${id} is an environment of another tenant` }]);
  }
  const { OBSERVE_EVERY_SECONDS: observeSeconds, STALE_AFTER_SECONDS: staleAfterSeconds } = context.settings;
  const proposeAfterSeconds = proposeAfter(context.settings, created.class);
  // Nothing is applied yet: its first apply brings the first look sooner than this.
  const observeAt = await firstLook(unit.tx, id, observeSeconds);
  const row = { ...created, currentReleaseId: null, observedAt: null, staleAt: null };
  const schedule = { observeAt, observeSeconds, staleAfterSeconds, proposeAfterSeconds };
  await commit(unit, begin(runtimeInventory, row), ({ state }) =>
    unit.tx.inventory.create({ data: { ...row, ...schedule, state } }),
  );
  unit.after(() => context.arm("observation", observeAt));
}

interface Created {
  id: string;
  tenantId: string;
  projectId: string;
  class: EnvironmentClass;
}
