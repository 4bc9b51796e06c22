import { PoolKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type { PoolKindName, Room } from "./operations.ts";

/** Who and what a run plays with, by place. Names are the run's own, so that runs share a database. */
export interface Cast {
  tenants: readonly string[];
  project(place: number): string;
  pool(place: number): CastPool;
  readonly pools: readonly CastPool[];
  /** What drained is gone for good: another pool takes its place. */
  replacePool(pool: CastPool): CastPool;
  /** `late`: under the id that it had before it ended last. */
  holder(tenant: number, place: number, late: boolean): Holder;
  /** Whoever comes at this place next has another id. */
  replaceHolder(holderId: string): void;
}

export interface CastPool {
  tenantId: string;
  poolId: string;
  kind: PoolKindName;
  shared: boolean;
  zone: string;
  size: number;
}

export interface Holder {
  tenantId: string;
  holderKind: string;
  holderId: string;
}

/** By whom they are owned: tenants by place. */
const pools: readonly (Omit<CastPool, "tenantId" | "poolId"> & { owner: number })[] = [
  { owner: 0, kind: "RUN_WORKERS", shared: false, zone: "a", size: 5 },
  { owner: 0, kind: "SANDBOX_HOSTS", shared: false, zone: "a", size: 3 },
  { owner: 3, kind: "RUN_WORKERS", shared: true, zone: "a", size: 6 },
  { owner: 3, kind: "GENERAL", shared: true, zone: "b", size: 6 },
  { owner: 1, kind: "GENERAL", shared: false, zone: "a", size: 4 },
  { owner: 3, kind: "RUN_WORKERS", shared: true, zone: "b", size: 2 },
  { owner: 3, kind: "SANDBOX_HOSTS", shared: true, zone: "b", size: 4 },
];

export function assemble(run: string, { factor }: Pick<Room, "factor"> = { factor: 1 }): Cast {
  const tenants = ["acme", "bolt", "core", "dune"].map((name) => `${name}-${run}`);
  let replaced = 0;
  const standing = pools.map(({ owner, ...pool }, place) => ({
    ...pool,
    size: pool.size * factor,
    tenantId: at(tenants, owner),
    poolId: `pool-${place}-${run}`,
  }));
  const holders = new Map<string, { now: string; before: string | undefined }>();
  const places = new Map<string, string>();

  return {
    tenants,
    project: (place) => `p${place}`,
    pool: (place) => at(standing, place),
    pools: standing,
    replacePool(pool) {
      replaced += 1;
      const place = standing.indexOf(pool);
      const other = { ...pool, poolId: `pool-${place}-${run}-${replaced}` };
      standing[place] = other;
      return other;
    },
    holder(tenant, place, late) {
      const key = `${tenant}/${place}`;
      const ids = holders.get(key) ?? { now: uuidv7(), before: undefined };
      holders.set(key, ids);
      const holderId = (late ? ids.before : undefined) ?? ids.now;
      places.set(ids.now, key);
      return { tenantId: at(tenants, tenant), holderKind: place % 2 === 0 ? "Attempt" : "Sandbox", holderId };
    },
    replaceHolder(holderId) {
      const key = places.get(holderId);
      if (key !== undefined) holders.set(key, { now: uuidv7(), before: holderId });
      places.delete(holderId);
    },
  };
}

/** As SetWorkerPool takes it. */
export function poolRequest({ poolId, kind, shared, zone, size }: CastPool) {
  return { poolId, kind: PoolKind[kind], shared, labels: { zone }, size };
}

function at<Item>(items: readonly Item[], place: number): Item {
  const item = items[place];
  if (item === undefined) throw new Error(`nothing has the place ${place} of ${items.length}`);
  return item;
}
