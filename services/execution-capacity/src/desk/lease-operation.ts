import type { Cause } from "@runtime-cloud/eventing/cause";
import type { CapacityLease, CapacityResource, PoolKind } from "../../generated/prisma/client.ts";

/** What a holder asks for by any of the ways in: one call, one of a batch, or one of a session. */
export type LeaseOperation = AcquireOperation | RenewOperation | ReleaseOperation;

interface Asked {
  tenantId: string;
  cause: Cause;
}

export interface AcquireOperation extends Asked {
  kind: "acquire";
  projectId: string;
  holderKind: string;
  holderId: string;
  target: { poolId: string } | { selector: PoolSelector };
  /** What it is charged to; undefined: as the kind of pool tells. */
  resource: CapacityResource | undefined;
  /** 1 or more. */
  units: number;
  priority: number;
  ttlMs: number;
  /** How long it may wait; 0: it is refused at once. */
  waitMs: number;
}

/** Any pool of a kind that carries all the labels. */
export interface PoolSelector {
  kind: PoolKind;
  labels: Readonly<Record<string, string>>;
  placement: "PACK" | "SPREAD";
}

export interface RenewOperation extends Asked {
  kind: "renew";
  leaseId: string;
  fencingToken: bigint;
  ttlMs: number;
}

export interface ReleaseOperation extends Asked {
  kind: "release";
  leaseId: string;
  /** Another token than the lease's is refused. */
  fencingToken?: bigint | undefined;
}

/** What an operation came to, once it is committed. */
export interface LeaseOutcome {
  /** As it was committed: for an acquire ACTIVE or WAITING, for a release as it ended. */
  lease: CapacityLease;
  /** Of a renewal. */
  renewal?: "RENEWED" | "ALREADY_ENDED" | "STALE_TOKEN";
  /** The database's instant at which it was decided. */
  now: Date;
}

/** Looks whether a lease's time is over, and ends it if so. */
export interface ExpireOperation extends Asked {
  kind: "expire";
  leaseId: string;
}
