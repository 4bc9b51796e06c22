import { deadlineCause } from "@runtime-cloud/eventing/cause";
import { type WorkQueueDefinition, workOn } from "@runtime-cloud/eventing/service-definition";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { z } from "zod";
import type { Inventory } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { lookAround, type LookedAround } from "./look-around.ts";
import { answerLook, askedBy, nextLook, OBSERVATIONS } from "./schedule.ts";

/** Longer than any observer may look. */
const LOOK_TIMEOUT_MS = 60_000;

const observation = z.object({
  environmentId: z.string().min(1).max(128),
  /** When the schedule wanted it; unset where something else asked for it. */
  dueAt: z.iso
    .datetime()
    .transform((text) => new Date(text))
    .optional(),
});

/** The looks that the schedule and events ask for. */
export function observations(context: Context): WorkQueueDefinition {
  const { settings, clock, measures } = context;
  return workOn({
    name: OBSERVATIONS,
    concurrency: settings.OBSERVE_CONCURRENCY,
    data: observation,
    async handle({ environmentId, dueAt }, signal) {
      const looked = await observeNow(context, environmentId, signal);
      if (dueAt) measures.late(clock.now().getTime() - dueAt.getTime());
      return looked;
    },
  });
}

/** Has an environment looked at and takes in what is seen; a retired one is left alone. */
export async function observeNow(context: Context, environmentId: string, signal: AbortSignal): Promise<LookedAround> {
  const inventory = await context.client.inventory.findUnique({ where: { id: environmentId } });
  if (!inventory || inventory.state === "RETIRED") return { changed: false };
  const began = context.clock.now();
  const asked = askedBy(inventory);
  const cause = asked ?? deadlineCause("observation", context.newId);
  const looked = await lookAround(context, inventory, {
    ...{ cause, signal, timeoutMs: LOOK_TIMEOUT_MS, asked: asked !== undefined },
    // What was asked for while this look was under way is the likeliest cause of what it found.
    causeIn: (locked) => askedBy(locked) ?? cause,
  });
  await settleSchedule(context, inventory, began);
  return looked;
}

/** Nothing to write for a look that the schedule claimed: its next one is settled already. */
async function settleSchedule(context: Context, inventory: Inventory, began: Date): Promise<void> {
  const asked = askedBy(inventory);
  if (!asked && inventory.observeAt > began) return;
  const cause = asked ?? deadlineCause("observation", context.newId);
  await unitOfWork(context, cause, async (unit) => {
    if (asked) await answerLook(unit, inventory);
    await nextLook(unit, context, inventory.id, began);
  });
}
