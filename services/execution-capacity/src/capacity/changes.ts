import type { Cause } from "@runtime-cloud/eventing/cause";
import type { FairShare } from "../../generated/prisma/client.ts";
import type { Place } from "./capacity-rows.ts";
import type { PoolSelector } from "../desk/lease-operation.ts";

/** What has changed since the last write, by the keys of the rows. */
export interface Changes {
  /** Leases that are new. */
  born: Set<string>;
  /** Leases that were changed, with the version that the database has. */
  moved: Map<string, number>;
  history: HistoryEntry[];
  events: OutboxEntry[];
  pools: Set<string>;
  scopes: Set<string>;
  /** Quotas by the key of their scope. */
  quotas: Set<string>;
  flows: Map<string, FlowChange>;
  placed: Placed[];
  /** Leases that left every queue. */
  left: { tenantId: string; leaseId: string }[];
}

export interface HistoryEntry {
  aggregate: string;
  id: string;
  tenantId: string;
  version: number;
  from: string;
  event: string;
  to: string;
  cause: Cause;
}

export interface OutboxEntry {
  id: string;
  topic: string;
  tenantId: string;
  subject: string;
  /** JSON. */
  envelope: string;
}

/** A flow's waiters by their difference, since not every flow that somebody leaves was read; its times as they are now. */
export interface FlowChange {
  flow: FairShare;
  waiting: number;
  served: boolean;
}

/** New places of one waiter. */
export interface Placed {
  tenantId: string;
  projectId: string;
  leaseId: string;
  priority: number;
  places: readonly Place[];
  selector: PoolSelector | undefined;
}

export function noChanges(): Changes {
  return {
    born: new Set(),
    moved: new Map(),
    history: [],
    events: [],
    pools: new Set(),
    scopes: new Set(),
    quotas: new Set(),
    flows: new Map(),
    placed: [],
    left: [],
  };
}
