import type { Cause } from "@runtime-cloud/eventing/cause";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import type { Inventory } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { environmentObservers, isObserver, timeoutOf } from "./environment-observers.ts";
import { lockEnvironment } from "../inventory/inventory.ts";
import { lookAt, type Sight } from "./look.ts";
import { recordSight } from "./record-sight.ts";
import { isRipe } from "./observer-backoff.ts";
import type { Look, Observer, Place } from "../observers/observer.ts";
import { takeInUnchanged } from "./unchanged-sight.ts";
import { reportOf } from "../inventory/world.ts";
import { type KnownWorld, readWorld } from "../inventory/world-rows.ts";

/**
 * Has an environment's observers look, side by side, and takes in what each saw as soon as it has: in a transaction of
 * its own, so that one that fails or hangs holds up no other. A look that nobody `asked` for leaves out those that are
 * failing and given time. Throws once all have come to an end, if one couldn't be taken in.
 */
export async function lookAround(context: Context, inventory: Inventory, around: LookAround): Promise<LookedAround> {
  const known = await readWorld(context.client, inventory.id);
  const now = context.clock.now();
  const observers = environmentObservers(context, inventory, known).filter(
    ({ name }) => around.asked || isRipe(reportOf(known, name) ?? ALWAYS, now),
  );
  const looks = observers.map((observer) => lookOnce(context, inventory, { known, observer, around }));
  await Promise.allSettled(looks);
  const outcomes = await Promise.all(looks);
  return { changed: outcomes.includes("changed") };
}

export interface LookAround extends Look {
  /** Somebody waits for it, or something has happened: it isn't only the interval's. */
  asked: boolean;
  /** The cause of what is found, once the environment is locked; the look's own unless given. */
  causeIn?: (locked: Inventory) => Cause;
}

export interface LookedAround {
  /** Something moved beside the times. */
  changed: boolean;
}

const ALWAYS = { retryAt: null };

/**
 * Nobody waits for a look as for a call: it may queue for a connection. An environment's first sight has thousands of
 * resources, or of drifts, and on a busy machine writing them takes its time.
 */
const TAKING_IN = { maxWait: 10_000, timeout: 15_000 };

async function lookOnce(context: Context, inventory: Inventory, { known, observer, around }: OneLook) {
  const timeoutMs = Math.min(around.timeoutMs, timeoutOf(observer));
  const sight = await lookAt(context, observer, inventory, { ...around, timeoutMs });
  const isUnchanged = await takeInUnchanged(context, inventory, known, sight);
  const outcome = isUnchanged
    ? "unchanged"
    : await takeInChanged(context, inventory, { known, observer, around, sight });
  if (outcome) context.measures.taken(observer.name, outcome);
  return outcome;
}

async function takeInChanged(context: Context, place: Place, { known, observer, around, sight }: Taking) {
  const { cause, causeIn = () => cause } = around;
  const recorded = await unitOfWork(
    context,
    cause,
    async (unit) => {
      const locked = await lockEnvironment(unit.tx, place);
      // Whoever retired it or configured it otherwise meanwhile has the last word.
      if (locked.state === "RETIRED" || !isObserver(observer, locked)) return undefined;
      return recordSight({ ...unit, cause: causeIn(locked) }, context, locked, { sight, before: known });
    },
    TAKING_IN,
  );
  return recorded?.outcome;
}

interface OneLook {
  /** The environment's world when the look began. */
  known: KnownWorld;
  observer: Observer;
  around: LookAround;
}

type Taking = OneLook & { sight: Sight };
