import { PoolScaling } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { poolRequest } from "./cast.ts";
import type { World } from "./world.ts";

/** Who waits for the same slots: a project of a tenant. */
export interface Flow {
  tenantId: string;
  projectId: string;
}

export interface Contest {
  /** Slots of the pool, which grants once everybody waits. */
  size: number;
  shares: readonly { tenantId: string; weight: number }[];
  flows: readonly Flow[];
  /** What the requests ask for, in turn. */
  units: readonly number[];
  /** Which of the leases that are held are given back, by place, turn by turn. */
  releases: readonly (readonly number[])[];
}

/** More than one turn may grant, so that no flow ever runs dry. */
const BACKLOG = 20;
const LONG_MS = 3_600_000;
const MANY = 1_000_000;

/** Keeps every flow backlogged while slots are given back, and answers the grants in their order. */
export async function backlog(world: World, contest: Contest): Promise<(Flow & { units: number })[]> {
  const { size, shares, flows, units, releases } = contest;
  const [{ desk, as }] = world.processes;
  const owner = `host-${uuidv7().slice(-8)}`;
  const poolId = `fair-${uuidv7().slice(-8)}`;
  const pool = { ...poolRequest({ tenantId: owner, poolId, kind: "RUN_WORKERS", shared: true, zone: "a", size }) };
  let asked = 0;

  const ask = ({ tenantId, projectId }: Flow) => {
    asked += 1;
    return desk.submit({
      ...{ kind: "acquire", tenantId, projectId, holderKind: "Attempt", holderId: uuidv7(), target: { poolId } },
      ...{ resource: undefined, units: units[asked % units.length] ?? 1, priority: 0, ttlMs: LONG_MS, waitMs: LONG_MS },
      cause: { actor: "property", correlationId: uuidv7() },
    });
  };
  const topUp = async () => {
    const waiting = await world.database.query<Flow & { waiting: number }>(
      `SELECT tenant_id AS "tenantId", project_id AS "projectId", count(*)::int AS waiting FROM capacity_lease
       WHERE state = 'WAITING' GROUP BY tenant_id, project_id`,
    );
    const missing = flows.flatMap((flow) => {
      const { waiting: there = 0 } = waiting.rows.find((row) => same(row, flow)) ?? {};
      return Array.from({ length: BACKLOG - there }, () => flow);
    });
    await Promise.all(missing.map(ask));
  };

  for (const { tenantId, weight } of shares)
    await as(tenantId).setQuota({ concurrentRuns: MANY, concurrentSandboxes: MANY, weight });
  await as(owner).setWorkerPool({ ...pool, scaling: PoolScaling.STATIC });
  await as(owner).cordonPool({ poolId });
  await topUp();
  await as(owner).uncordonPool({ poolId });
  for (const places of releases) {
    await topUp();
    const held = (await world.live()).filter(({ seen }) => seen.state === "ACTIVE");
    const given = new Set(places.flatMap((place) => held[place % held.length]?.seen ?? []));
    await Promise.all(
      [...given].map(({ tenantId, leaseId }) =>
        desk.submit({ kind: "release", tenantId, leaseId, cause: { actor: "property", correlationId: uuidv7() } }),
      ),
    );
  }
  const { rows } = await world.database.query<Flow & { units: number }>(
    `SELECT tenant_id AS "tenantId", project_id AS "projectId", units FROM capacity_lease
     WHERE fencing_token IS NOT NULL ORDER BY fencing_token`,
  );
  return rows;
}

function same(one: Flow, other: Flow): boolean {
  return one.tenantId === other.tenantId && one.projectId === other.projectId;
}
