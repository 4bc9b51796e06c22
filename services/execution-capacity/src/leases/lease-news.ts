import type { Logger } from "@runtime-cloud/service-kit/logger";
import { type CapacityLease, Prisma } from "../../generated/prisma/client.ts";
import { type LeaseRow, leaseOf } from "../capacity/capacity-rows.ts";
import type { Context } from "../context.ts";

/** What became of leases, for those in this process who follow them. */
export interface LeaseNews {
  /** Says what a transaction of this process has made of leases, after its commit. Costs next to nothing unfollowed. */
  tell(leases: readonly CapacityLease[]): void;
  /**
   * Calls `listener` with each later version of a tenant's lease, of several in quick succession with the last, until
   * the answered function is called. What another process commits is found within two seconds. A lease that waits is
   * told at each look, since it comes forward in its queue without changing. `known`, if given, isn't told again.
   */
  follow(tenantId: string, leaseId: string, listener: Listener, known?: CapacityLease): () => void;
  /** Ends the looks. Nobody is told anything afterwards. */
  stop(): Promise<void>;
}

/** Must not throw. */
export type Listener = (lease: CapacityLease) => void;

/** How often the database is looked at while somebody follows something. */
const LOOK_EVERY_MS = 1_000;

export function openLeaseNews({ client, logger }: { client: Context["client"]; logger: Logger }): LeaseNews {
  const followed = new Map<string, Followed>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let stopped = false;
  let failing = false;

  function tell(leases: readonly CapacityLease[]): void {
    if (followed.size === 0) return;
    for (const lease of leases) {
      const entry = followed.get(keyOf(lease.tenantId, lease.id));
      if (entry && isNewer(lease, entry.known)) tellAll(entry, lease);
    }
  }

  function schedule(): void {
    if (timer || looking || stopped || followed.size === 0) return;
    timer = setTimeout(() => {
      timer = undefined;
      looking = look().finally(() => {
        looking = undefined;
        schedule();
      });
    }, LOOK_EVERY_MS);
  }

  async function look(): Promise<void> {
    const entries = [...followed.values()];
    try {
      tell(await changedLeases(client, entries));
      failing = false;
    } catch (err) {
      if (!failing) logger.warn({ err }, "followed leases can't be looked at now; the looks go on");
      failing = true;
      return;
    }
    for (const entry of entries) if (entry.known?.state === "WAITING") tellAll(entry, entry.known);
  }

  return {
    tell,
    follow(tenantId, leaseId, listener, known) {
      const key = keyOf(tenantId, leaseId);
      const entry = followed.get(key) ?? { tenantId, leaseId, listeners: new Set(), known: undefined };
      if (known && isNewer(known, entry.known)) tellAll(entry, known);
      // Listeners are told apart even when the same function follows twice.
      const own: Listener = (lease) => listener(lease);
      entry.listeners.add(own);
      followed.set(key, entry);
      if (entry.known && entry.known !== known) queueMicrotask(() => catchUp(entry, own));
      schedule();
      return () => {
        entry.listeners.delete(own);
        if (entry.listeners.size > 0 || followed.get(key) !== entry) return;
        followed.delete(key);
        if (followed.size > 0) return;
        clearTimeout(timer);
        timer = undefined;
      };
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      followed.clear();
      await looking;
    },
  };
}

interface Followed {
  tenantId: string;
  leaseId: string;
  listeners: Set<Listener>;
  /** The latest version that was told. */
  known: CapacityLease | undefined;
}

function tellAll(entry: Followed, lease: CapacityLease): void {
  entry.known = lease;
  for (const listener of [...entry.listeners]) listener(lease);
}

/** For somebody who comes to a lease of which others know more. */
function catchUp({ known, listeners }: Followed, listener: Listener): void {
  if (known && listeners.has(listener)) listener(known);
}

/** A look may have begun before a commit that was told meanwhile. */
function isNewer({ version }: CapacityLease, known: CapacityLease | undefined): boolean {
  return known === undefined || version > known.version;
}

function keyOf(tenantId: string, leaseId: string): string {
  return `${leaseId}/${tenantId}`;
}

/** Those whose version isn't the one that is known, also where retention has put them. */
async function changedLeases(client: Context["client"], entries: readonly Followed[]): Promise<CapacityLease[]> {
  const tenants = entries.map(({ tenantId }) => tenantId);
  const ids = entries.map(({ leaseId }) => leaseId);
  const versions = entries.map(({ known }) => known?.version ?? UNKNOWN_VERSION);
  const from = (table: Prisma.Sql) => Prisma.sql`
    SELECT to_jsonb(lease) AS lease FROM followed JOIN ${table} lease USING (tenant_id, id)
    WHERE lease.version <> followed.version`;
  const rows = await client.$queryRaw<{ lease: LeaseRow }[]>`
    WITH followed AS MATERIALIZED (
      SELECT * FROM unnest(${tenants}::text[], ${ids}::uuid[], ${versions}::int[]) AS followed (tenant_id, id, version)
    )
    ${from(Prisma.sql`capacity_lease`)} UNION ALL ${from(Prisma.sql`past_lease`)}`;
  return rows.map(({ lease }) => leaseOf(lease));
}

const UNKNOWN_VERSION = -1;
