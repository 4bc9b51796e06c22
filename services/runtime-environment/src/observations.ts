import { deadlineCause } from "@runtime-cloud/eventing/cause";
import { type WorkQueueDefinition, workOn } from "@runtime-cloud/eventing/service-definition";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { z } from "zod";
import type { Context } from "./context.ts";
import { lockEnvironment } from "./inventory.ts";
import { lookAt } from "./look.ts";
import { recordSight } from "./observe.ts";
import { engineObserver } from "./observers/engine-observer.ts";
import { answerLook, askedBy, OBSERVATIONS } from "./schedule.ts";

/** How many environments one process looks at side by side. */
const CONCURRENCY = 8;
/** An engine compares every resource with the world: it may take a while. */
const LOOK_TIMEOUT_MS = 50_000;

const observation = z.object({ environmentId: z.string().min(1).max(128) });

/** The looks that the schedule and events ask for. */
export function observations(context: Context): WorkQueueDefinition {
  return workOn({
    name: OBSERVATIONS,
    concurrency: CONCURRENCY,
    data: observation,
    handle: ({ environmentId }, signal) => observeNow(context, environmentId, signal),
  });
}

/** Has the engine look at an environment and takes in what it saw; a retired one is left alone. */
export async function observeNow(context: Context, environmentId: string, signal: AbortSignal): Promise<Outcome> {
  const inventory = await context.client.inventory.findUnique({ where: { id: environmentId } });
  if (!inventory || inventory.state === "RETIRED") return { changed: false };
  const { id, tenantId } = inventory;
  const cause = askedBy(inventory) ?? deadlineCause("observation", context.newId);
  const look = { cause, signal, timeoutMs: LOOK_TIMEOUT_MS };
  const sight = await lookAt(context, engineObserver(context), { id, tenantId }, look);
  const { changed } = await unitOfWork(context, cause, async (unit) => {
    // What was asked for while this look was under way is the likeliest cause of what it found.
    const asked = askedBy(await lockEnvironment(unit.tx, { id, tenantId }));
    await answerLook(unit, inventory);
    return recordSight({ ...unit, cause: asked ?? cause }, context, { id, tenantId }, sight);
  });
  return { changed };
}

interface Outcome {
  changed: boolean;
}
