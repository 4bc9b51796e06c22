import type { Answer, Seen } from "./answers.ts";
import type { Holder } from "./cast.ts";

/** What the run has learnt, and so what no later answer may contradict: I6, I7 and I9 as a caller sees them. */
export interface Memory {
  /** The newest but `back` of the leases that were seen. */
  lease(back: number): Remembered | undefined;
  /** Of those that were ACTIVE when the burst began, the newest but `back`. */
  activeLease(back: number): Remembered | undefined;
  byId(leaseId: string): Remembered | undefined;
  /** The live lease of a holder when the burst began, if nothing in the burst may end it. */
  steady(holder: Holder, resource: string): Remembered | undefined;
  hasEnded(holder: Holder): boolean;
  /** What it says contradicts what was said before. */
  contradictions(seen: Seen): string[];
  /** The live leases as they are while nothing is under way; those that aren't among them have ended. */
  refresh(rows: readonly LiveRow[]): void;
  /** A burst may end these; told before it begins. */
  disturb(leaseIds: readonly string[], holders: readonly Holder[]): void;
  holderEnded(holder: Holder): void;
}

export interface Remembered {
  leaseId: string;
  tenantId: string;
  fencingToken: bigint | null;
  end: string | null;
  /** Live, and nothing may have ended it since. */
  steady: boolean;
  active: boolean;
  /** Had ended when the burst began. */
  gone: boolean;
}

export interface LiveRow {
  seen: Seen;
  holder: Holder;
  resource: string;
  /** Has long to live by the database's clock. */
  lasting: boolean;
}

export function createMemory(): Memory {
  const leases = new Map<string, Remembered>();
  const order: Remembered[] = [];
  const live = new Map<string, { holder: Holder; lease: Remembered }>();
  const endedHolders = new Set<string>();

  function remember({ leaseId, tenantId, fencingToken, end }: Seen): Remembered {
    let lease = leases.get(leaseId);
    if (!lease) {
      lease = { leaseId, tenantId, fencingToken, end, steady: false, active: false, gone: false };
      leases.set(leaseId, lease);
      order.push(lease);
    }
    lease.fencingToken ??= fencingToken;
    lease.end ??= end;
    return lease;
  }

  return {
    lease: (back) => order[Math.max(0, order.length - 1 - back)],
    activeLease(back) {
      const active = order.filter((lease) => lease.active);
      return active[active.length - 1 - (back % active.length)];
    },
    byId: (leaseId) => leases.get(leaseId),
    steady(holder, resource) {
      const lease = live.get(`${keyOf(holder)} ${resource}`)?.lease;
      return lease?.steady ? lease : undefined;
    },
    hasEnded: (holder) => endedHolders.has(keyOf(holder)),
    contradictions(seen) {
      const { fencingToken, end, gone } = remember(seen);
      const name = `lease ${seen.leaseId}`;
      return [
        ...(seen.fencingToken !== null && seen.fencingToken !== fencingToken
          ? [`I7: ${name} has the token ${seen.fencingToken}, and had ${fencingToken}`]
          : []),
        ...(seen.end === null && gone ? [`I7: ${name} is ${seen.state}, and had ended`] : []),
        ...(seen.end !== null && seen.end !== end ? [`I7: ${name} is ${seen.end}, and was ${end}`] : []),
      ];
    },
    refresh(rows) {
      live.clear();
      for (const lease of leases.values()) {
        lease.steady = lease.active = false;
        lease.gone = true;
      }
      for (const { seen, holder, resource, lasting } of rows) {
        const lease = remember(seen);
        lease.steady = lasting;
        lease.gone = false;
        lease.active = seen.state === "ACTIVE";
        live.set(`${keyOf(holder)} ${resource}`, { holder, lease });
      }
    },
    disturb(leaseIds, holders) {
      for (const id of leaseIds) {
        const lease = leases.get(id);
        if (lease) lease.steady = false;
      }
      const disturbed = new Set(holders.map(keyOf));
      for (const { holder, lease } of live.values()) {
        if (disturbed.has(keyOf(holder))) lease.steady = false;
      }
    },
    holderEnded: (holder) => void endedHolders.add(keyOf(holder)),
  };
}

function keyOf({ tenantId, holderKind, holderId }: Holder): string {
  return `${tenantId} ${holderKind} ${holderId}`;
}

/** The lease that an answer tells of. */
export function leaseOf(answer: Answer): Seen | undefined {
  return "lease" in answer ? answer.lease : undefined;
}
