import type pg from "pg";
import type { Seen } from "./answers.ts";
import type { Call, Stage } from "./call.ts";
import type { CastPool } from "./cast.ts";
import { acquireCall, lookCall, releaseCall, renewCall, repeatCall } from "./lease-calls.ts";
import type { Remembered } from "./memory.ts";
import type { Operation } from "./operations.ts";
import {
  cordonCall,
  deadlinesCall,
  drainCall,
  endHolderCall,
  retireQuotaCall,
  revokeCall,
  setPoolCall,
  setQuotaCall,
  uncordonCall,
} from "./operator-calls.ts";

/** Turns what was generated into calls, by what is known when their burst begins. */
export interface Planner {
  /** Undefined for what names a lease or a request while there is none yet. */
  of(operation: Operation): Call | undefined;
  /** Which lease each acquire was given, for when it comes again. */
  learn(answered: readonly { call: Call; lease: Seen | undefined }[]): void;
  /** The pools that take the place of those that have drained meanwhile. */
  drained(database: pg.Pool): Promise<CastPool[]>;
}

export function planner(stage: Stage): Planner {
  const { cast, memory } = stage;
  const acquires: Call[] = [];
  /** By the acquire that was given it. */
  const given = new Map<Call, string>();

  function acquired(call: Call): Call {
    acquires.push(call);
    return call;
  }
  const ofLease = (back: number, make: (lease: Remembered) => Call): Call | undefined => {
    const lease = memory.lease(back);
    return lease && make(lease);
  };

  return {
    of(operation) {
      switch (operation.kind) {
        case "acquire":
          return acquired(acquireCall(operation, stage));
        case "repeat": {
          const known = acquires[acquires.length - 1 - operation.back];
          if (!known) return undefined;
          const leaseId = given.get(known);
          const lives = leaseId === undefined ? undefined : memory.byId(leaseId);
          const steadyBefore = lives?.steady ?? false;
          return repeatCall(known, leaseId, () => steadyBefore && (lives?.steady ?? false));
        }
        case "renew":
          return ofLease(operation.lease, (lease) => renewCall(operation, lease, stage));
        case "release":
          return ofLease(operation.lease, (lease) => releaseCall(operation, lease, stage));
        case "revoke": {
          const active = memory.activeLease(operation.lease);
          return active && revokeCall(active, stage);
        }
        case "look":
          return ofLease(operation.lease, (lease) => lookCall(lease, stage));
        case "endHolder": {
          const holder = cast.holder(operation.tenant, operation.holder, false);
          return endHolderCall(holder, operation.deliveries, stage);
        }
        case "setQuota":
          return setQuotaCall(operation, stage);
        case "retireQuota":
          return retireQuotaCall(operation, stage);
        case "resize":
          return setPoolCall(cast.pool(operation.pool), stage, operation.size);
        case "cordon":
          return cordonCall(cast.pool(operation.pool), operation.resumes, stage);
        case "uncordon":
          return uncordonCall(cast.pool(operation.pool), stage);
        case "drain":
          return drainCall(cast.pool(operation.pool), operation.withinSeconds, stage);
        case "deadlines":
          return deadlinesCall();
      }
    },
    learn(answered) {
      for (const { call, lease } of answered) {
        if (lease) given.set(call, lease.leaseId);
        else given.delete(call);
      }
    },
    async drained(database) {
      const ids = cast.pools.map(({ poolId }) => poolId);
      const { rows } = await database.query<{ id: string }>(
        "SELECT id FROM worker_pool WHERE id = ANY($1) AND state = 'DRAINED'",
        [ids],
      );
      const gone = cast.pools.filter(({ poolId }) => rows.some(({ id }) => id === poolId));
      return gone.map((pool) => cast.replacePool(pool));
    },
  };
}
