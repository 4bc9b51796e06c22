import { setTimeout as wait } from "node:timers/promises";

import type { LeaseOutcome } from "@runtime-cloud/execution-capacity/desk/lease-operation";
import type { CapacityService } from "./capacity-service.ts";
import { acquisition, release } from "./desk-operations.ts";
import { eachOf } from "./each-of.ts";

/** Holders who ask for a slot, wait for it, hold it for a moment, give it back, and ask again. */
export interface Crowd {
  /** Each time that one of them asked. */
  readonly turns: readonly Turn[];
  /** Settles when all of them are in the queue, or have been. */
  join(holders: readonly Holder[]): Promise<void>;
  /** Lets everybody give up, or back. Throws if anything failed for one of them. */
  leave(): Promise<void>;
}

export interface Holder {
  readonly tenantId: string;
  readonly projectId: string;
}

/** In `performance.now()`. */
export interface Turn {
  readonly asked: number;
  /** When the holder heard of it. */
  granted: number | undefined;
}

export const HOLD_MS = 50;
const TTL_MS = 60_000;
const PATIENCE_MS = 600_000;
const CALLS_AT_ONCE = 128;

export function openCrowd({ context: { news }, desk }: CapacityService, poolId: string): Crowd {
  const turns: Turn[] = [];
  const waiting = new Map<string, Lease>();
  const underWay = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let leaving = false;

  async function ask(holder: Holder): Promise<void> {
    const turn: Turn = { asked: performance.now(), granted: undefined };
    turns.push(turn);
    const { lease } = await desk.submit(acquisition({ ...holder, poolId, ttlMs: TTL_MS, waitMs: PATIENCE_MS }));
    const rest = use(holder, turn, lease, lease.state === "ACTIVE" || granted(lease))
      .catch((error: unknown) => void failures.push(error))
      .finally(() => underWay.delete(rest));
    underWay.add(rest);
  }

  async function use(holder: Holder, turn: Turn, lease: Lease, isGranted: boolean | Promise<boolean>) {
    if (!(await isGranted)) return;
    turn.granted = performance.now();
    await wait(HOLD_MS);
    await desk.submit(release(lease));
    if (!leaving) await ask(holder);
  }

  /** Whether it was granted in the end, or given up. */
  function granted(lease: Lease): Promise<boolean> {
    waiting.set(lease.id, lease);
    return new Promise((resolve) => {
      const unfollow = news.follow(
        lease.tenantId,
        lease.id,
        ({ state }) => {
          if (state === "WAITING") return;
          unfollow();
          waiting.delete(lease.id);
          resolve(state === "ACTIVE");
        },
        lease,
      );
    });
  }

  return {
    turns,
    join: (holders) => eachOf(holders, CALLS_AT_ONCE, ask),
    async leave() {
      leaving = true;
      await eachOf([...waiting.values()], CALLS_AT_ONCE, (lease) => desk.submit(release(lease)));
      while (underWay.size > 0) await Promise.all(underWay);
      if (failures.length > 0) throw failures[0];
    },
  };
}

type Lease = LeaseOutcome["lease"];
