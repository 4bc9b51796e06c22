import { StaleRow } from "@runtime-cloud/service-kit/errors";
import type { CapacityLease } from "../generated/prisma/client.ts";
import type { ServiceUnit, Tx, Wakes } from "./context.ts";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";

/** What a change touches: the scopes whose use may rise or fall, and the pools that it changes. */
export interface Claim {
  /** A project, or a whole tenant where `projectId` is empty. */
  scopes: readonly { tenantId: string; projectId: string }[];
  pools: readonly PoolKey[];
}

export interface PoolKey {
  tenantId: string;
  id: string;
}

/** The locks under which capacity is granted and given back; it lives no longer than its transaction. */
export interface Capacity {
  unit: ServiceUnit;
  wakes: Wakes;
  /** The database's instant, read once every lock was held. */
  now: Date;
  tenants: ReadonlySet<string>;
  claimed: readonly PoolKey[];
  /** The claimed pools, and those where something waits for what the claim may free. */
  pools: readonly PoolKey[];
}

/**
 * Takes the locks in the one order that holds everywhere: tenants by id, then pools by id, then leases. A tenant's row
 * of `scope_usage` stands for its projects' rows too, so these are never locked by themselves.
 *
 * Which tenants and pools a claim involves is read before the locks, and the pools again under them: in a shared pool a
 * tenant may have begun to wait meanwhile, for which {@link assertCovered} makes the unit start again.
 */
export async function lockCapacity(wakes: Wakes, unit: ServiceUnit, claim: Claim): Promise<Capacity> {
  const { tx } = unit;
  await openScopes(tx, claim);
  const { tenants } = await involved(tx, claim);
  await tx.$queryRaw`
    SELECT FROM scope_usage WHERE tenant_id = ANY(${tenants}) AND project_id = ''
    ORDER BY tenant_id FOR NO KEY UPDATE`;
  const { pools } = await involved(tx, claim);
  await tx.$queryRaw`
    SELECT FROM worker_pool WHERE (tenant_id, id) IN (
      SELECT * FROM unnest(${pools.map((pool) => pool.tenantId)}::text[], ${pools.map((pool) => pool.id)}::text[]))
    ORDER BY tenant_id, id FOR NO KEY UPDATE`;
  const now = await transactionNow(tx);
  return { unit, wakes, now, tenants: new Set(tenants), claimed: claim.pools, pools };
}

/** Throws StaleRow, so that the unit locks anew, when a lease turns out to lie outside the locks. */
export function assertCovered({ tenants, pools }: Capacity, lease: CapacityLease): void {
  const poolCovered = pools.some(({ tenantId, id }) => tenantId === lease.poolTenantId && id === lease.poolId);
  if (poolCovered && tenants.has(lease.tenantId)) return;
  throw new StaleRow(`lease ${lease.id} came up while the locks were taken`);
}

/** Every scope has its row of use before it is locked or charged, quota or not. */
async function openScopes(tx: Tx, { scopes }: Claim): Promise<void> {
  const tenantIds = scopes.map((scope) => scope.tenantId);
  const projectIds = scopes.map((scope) => scope.projectId);
  await tx.$executeRaw`
    INSERT INTO scope_usage (tenant_id, project_id)
    SELECT tenant_id, project_id FROM unnest(${tenantIds}::text[], ${projectIds}::text[]) AS scope (tenant_id, project_id)
    UNION SELECT tenant_id, '' FROM unnest(${tenantIds}::text[]) AS tenant (tenant_id)
    ORDER BY 1, 2
    ON CONFLICT DO NOTHING`;
}

/**
 * Whose use may fall are the claim's tenants and those whose leases are overdue in its pools; involved are the pools
 * where these wait, and then every tenant that waits in one of the pools.
 */
async function involved(tx: Tx, { scopes, pools }: Claim): Promise<{ tenants: string[]; pools: PoolKey[] }> {
  const [row] = await tx.$queryRaw<{ tenants: string[]; pools: PoolKey[] }[]>`
    WITH claimed AS (
      SELECT * FROM unnest(${pools.map((pool) => pool.tenantId)}::text[], ${pools.map((pool) => pool.id)}::text[])
        AS pool (tenant_id, id)
    ), falling AS (
      SELECT unnest(${scopes.map((scope) => scope.tenantId)}::text[]) AS tenant_id
      UNION
      SELECT lease.tenant_id FROM capacity_lease lease
      JOIN claimed ON claimed.tenant_id = lease.pool_tenant_id AND claimed.id = lease.pool_id
      WHERE lease.state = 'ACTIVE' AND lease.expires_at <= clock_timestamp()
    ), settled AS (
      SELECT tenant_id, id FROM claimed
      UNION
      SELECT lease.pool_tenant_id, lease.pool_id FROM capacity_lease lease
      JOIN falling ON falling.tenant_id = lease.tenant_id
      WHERE lease.state = 'WAITING'
    )
    SELECT
      ARRAY(
        SELECT tenant_id FROM falling
        UNION
        SELECT lease.tenant_id FROM capacity_lease lease
        JOIN settled ON settled.tenant_id = lease.pool_tenant_id AND settled.id = lease.pool_id
        WHERE lease.state = 'WAITING'
      ) AS tenants,
      (
        SELECT coalesce(jsonb_agg(jsonb_build_object('tenantId', tenant_id, 'id', id) ORDER BY tenant_id, id), '[]')
        FROM settled
      ) AS pools`;
  return row ?? { tenants: [], pools: [] };
}
