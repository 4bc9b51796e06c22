import type { LeaseDesk } from "@runtime-cloud/execution-capacity/desk/lease-desk";
import { acquisition, release } from "./desk-operations.ts";
import { steadily } from "./steadily.ts";

/** Somebody who has nothing to do with the storm: another tenant, in another pool. */
export interface Bystander {
  /** Ends its work. Throws if an operation of its failed. */
  stop(): Promise<readonly Acquisition[]>;
}

export interface Acquisition {
  /** When it was asked for, in `performance.now()`. */
  readonly at: number;
  readonly ms: number;
}

export const BYSTANDER = "bystander";
export const BYSTANDER_POOL = "bystander-pool";
export const BYSTANDER_POOL_SIZE = 10_000;
export const BYSTANDER_PAIRS_PER_SECOND = 200;
const TTL_MS = 600_000;

/** Acquires and releases at a steady rate, whether or not it was answered before. */
export function startBystander(desk: LeaseDesk): Bystander {
  const acquisitions: Acquisition[] = [];
  const stopping = new AbortController();
  const done = steadily({ perSecond: BYSTANDER_PAIRS_PER_SECOND, signal: stopping.signal }, async () => {
    const at = performance.now();
    const { lease } = await desk.submit(acquisition({ tenantId: BYSTANDER, poolId: BYSTANDER_POOL, ttlMs: TTL_MS }));
    if (lease.state !== "ACTIVE") throw new Error(`a bystander's lease is ${lease.state} in a pool that is free`);
    acquisitions.push({ at, ms: performance.now() - at });
    await desk.submit(release(lease));
  });
  // `stop` tells it.
  done.catch(() => undefined);
  return {
    async stop() {
      stopping.abort();
      await done;
      return acquisitions;
    },
  };
}
