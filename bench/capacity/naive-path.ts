import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type pg from "pg";
import { committed } from "../events/committed.ts";
import { HOT_SCOPE } from "./hot-scope.ts";
import { leaseEnvelopes } from "./lease-envelopes.ts";
import type { LeasePath } from "./lease-path.ts";
import { createPlainTables } from "./plain-tables.ts";

const { tenantId, projectId, poolId, holderKind, ttlSeconds } = HOT_SCOPE;

/**
 * A transaction for each request, which locks the tenant's quota and the pool, then writes both, the lease and its
 * event. Its statements are prepared, and its connections stay open.
 */
export async function openNaivePath(databaseUrl: string, connections: number): Promise<LeasePath> {
  const tables = await createPlainTables(databaseUrl, connections);
  const envelopes = leaseEnvelopes();

  async function acquire(): Promise<{ leaseId: string; holderId: string; token: bigint }> {
    const [leaseId, holderId, eventId] = [uuidv7(), uuidv7(), uuidv7()];
    let token = 0n;
    await committed(tables.pool, async (client) => {
      const { quota, slots } = await locked(client);
      if (quota.used >= quota.slots || slots.used >= slots.size) throw new Error("no slot is free");
      token = BigInt(slots.next_token);
      await charge(client, 1);
      await client.query({
        ...INSERT_LEASE,
        values: [tenantId, leaseId, projectId, holderKind, holderId, poolId, token, ttlSeconds],
      });
      const envelope = envelopes.granted({ leaseId, holderId, eventId });
      await client.query({ ...TELL, values: [eventId, envelopes.grantedTopic, tenantId, leaseId, envelope] });
    });
    return { leaseId, holderId, token };
  }

  async function release(leaseId: string, holderId: string): Promise<void> {
    const eventId = uuidv7();
    await committed(tables.pool, async (client) => {
      await locked(client);
      const { rowCount } = await client.query({ ...END_LEASE, values: [tenantId, leaseId] });
      if (rowCount !== 1) throw new Error(`lease ${leaseId} isn't held`);
      await charge(client, -1);
      const envelope = envelopes.released({ leaseId, holderId, eventId });
      await client.query({ ...TELL, values: [eventId, envelopes.releasedTopic, tenantId, leaseId, envelope] });
    });
  }

  return {
    name: "naive",
    about: `SELECT … FOR UPDATE of the tenant's quota and the pool, then a write of each, in a transaction a request; ${connections} connections`,
    async acquire() {
      const { leaseId, holderId, token } = await acquire();
      return { token, release: () => release(leaseId, holderId) };
    },
    check: tables.check,
    close: tables.close,
  };
}

async function locked(client: pg.PoolClient): Promise<{ quota: QuotaRow; slots: PoolRow }> {
  const quotas = await client.query<QuotaRow>({ ...LOCK_QUOTA, values: [tenantId] });
  const pools = await client.query<PoolRow>({ ...LOCK_POOL, values: [tenantId, poolId] });
  const [[quota], [slots]] = [quotas.rows, pools.rows];
  if (quota === undefined || slots === undefined) throw new Error("the quota or the pool is missing");
  return { quota, slots };
}

async function charge(client: pg.PoolClient, units: number): Promise<void> {
  await client.query({ ...CHARGE_QUOTA, values: [tenantId, units] });
  await client.query({ ...CHARGE_POOL, values: [tenantId, poolId, units] });
}

const LOCK_QUOTA = {
  name: "lock-quota",
  text: "SELECT slots, used FROM slot_quota WHERE tenant_id = $1 AND project_id = '' FOR UPDATE",
};
const LOCK_POOL = {
  name: "lock-pool",
  text: "SELECT size, used, next_token FROM slot_pool WHERE tenant_id = $1 AND id = $2 FOR UPDATE",
};
const CHARGE_QUOTA = {
  name: "charge-quota",
  text: "UPDATE slot_quota SET used = used + $2 WHERE tenant_id = $1 AND project_id = ''",
};
const CHARGE_POOL = {
  name: "charge-pool",
  text: `UPDATE slot_pool SET used = used + $3, next_token = next_token + greatest($3, 0)
         WHERE tenant_id = $1 AND id = $2`,
};
const INSERT_LEASE = {
  name: "insert-lease",
  text: `INSERT INTO slot_lease (tenant_id, id, project_id, holder_kind, holder_id, pool_id, state, token, granted_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, 'ACTIVE', $7, clock_timestamp(), clock_timestamp() + make_interval(secs => $8))`,
};
const END_LEASE = {
  name: "end-lease",
  text: `UPDATE slot_lease SET state = 'RELEASED', ended_at = clock_timestamp(),
           execution_seconds = floor(extract(epoch FROM clock_timestamp() - granted_at))
         WHERE tenant_id = $1 AND id = $2 AND state = 'ACTIVE'`,
};
const TELL = {
  name: "tell",
  text: "INSERT INTO slot_outbox (id, topic, tenant_id, subject, envelope) VALUES ($1, $2, $3, $4, $5)",
};

interface QuotaRow {
  slots: number;
  used: number;
}

interface PoolRow {
  size: number;
  used: number;
  /** A bigint, which the driver reads as text. */
  next_token: string;
}
