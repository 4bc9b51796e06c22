import { commit } from "@runtime-cloud/eventing/commit";
import { accept, begin } from "@runtime-cloud/eventing/decision";
import { type FieldViolation, InvalidInput } from "@runtime-cloud/service-kit/errors";
import { workerPool } from "@runtime-cloud/state-machines/worker-pool";
import type { WorkerPool } from "../../generated/prisma/client.ts";
import type { ServiceUnit, Told } from "../context.ts";
import { advancePool, findPool } from "./worker-pool.ts";

/** What an operator wants a pool to be. */
export type PoolWish = Pick<
  WorkerPool,
  "tenantId" | "id" | "kind" | "scaling" | "shared" | "environmentId" | "programVersion"
> & { size: number };

/**
 * Creates the pool or changes it. A static pool has the new size at once; an elastic one asks for it, and has it once
 * ProvisioningApplied tells so. Wishing for what is already so changes nothing. Throws InvalidInput.
 */
export async function setPool(
  told: Pick<Told, "arm">,
  unit: ServiceUnit,
  now: Date,
  wish: PoolWish,
): Promise<WorkerPool> {
  const before = await findPool(unit.tx, wish);
  await refuseWrongWish(unit, wish, before);
  const { scaling, shared, environmentId, programVersion, size } = wish;
  const pool = before ?? (await createPool(unit, wish));
  const event = { type: scaling === "STATIC" ? "resize" : "requestSize", size } as const;
  // Asked first of all, so that a pool which may not change any more keeps its other columns too.
  accept(workerPool, pool, event);
  const described = await unit.tx.workerPool.update({
    where: { tenantId_id: { tenantId: pool.tenantId, id: pool.id } },
    data: { scaling, shared, environmentId, programVersion },
  });
  if (isSo(pool, wish)) return described;
  return askFor(told, unit, now, await advancePool(unit, described, event));
}

/** A failed resize is asked for anew: its note says that it failed. */
function isSo({ state, scaling, currentSize, desiredSize, note, ...pool }: WorkerPool, wish: PoolWish): boolean {
  if (scaling !== wish.scaling || desiredSize !== wish.size) return false;
  if (scaling === "STATIC") return state !== "PROVISIONING" && currentSize === wish.size;
  const sameProgram = pool.environmentId === wish.environmentId && pool.programVersion === wish.programVersion;
  return sameProgram && pool.generation > 0 && (note === null || currentSize === wish.size);
}

/** Has the service ask IaCProvisioningService for an elastic pool's size; a static pool has nothing to ask for. */
async function askFor(
  { arm }: Pick<Told, "arm">,
  unit: ServiceUnit,
  now: Date,
  { tenantId, id, scaling }: WorkerPool,
): Promise<WorkerPool> {
  const elastic = scaling === "ELASTIC";
  if (elastic) unit.after(() => arm("pool-resize", now, { pool: id }));
  return unit.tx.workerPool.update({
    where: { tenantId_id: { tenantId, id } },
    data: { resizeDueAt: elastic ? now : null, resizeRunId: null },
  });
}

async function createPool(unit: ServiceUnit, wish: PoolWish): Promise<WorkerPool> {
  const { tenantId, id, kind, scaling, shared, environmentId, programVersion } = wish;
  const nothing = { currentSize: 0, desiredSize: 0, generation: 0, used: 0, drainDeadline: null };
  const none = { ...nothing, resumeAt: null, note: null };
  const row = { ...none, tenantId, id, kind, scaling, shared, environmentId, programVersion };
  const creation = begin(workerPool, { ...row, state: "PROVISIONING" });
  return commit(unit, creation, ({ state }) => unit.tx.workerPool.create({ data: { ...row, state } }));
}

const PROGRAM_VERSION = /^[^@\s]+@[^@\s]+$/;

async function refuseWrongWish(unit: ServiceUnit, wish: PoolWish, before: WorkerPool | null): Promise<void> {
  const violations: FieldViolation[] = [];
  if (wish.scaling === "ELASTIC") {
    const needed = (field: string, what: string) => ({ field, description: `an ELASTIC pool needs ${what}` });
    if (!wish.environmentId) violations.push(needed("environmentId", "the environment whose program sizes it"));
    if (!PROGRAM_VERSION.test(wish.programVersion ?? "")) {
      violations.push(needed("programVersion", "the program that sizes it, as name@version"));
    }
  }
  if (before && before.kind !== wish.kind) {
    const description = `pool ${wish.id} is ${before.kind} and stays so: leases count by it; create another pool`;
    violations.push({ field: "kind", description });
  }
  if (wish.shared && (await isSharedByAnother(unit, wish))) {
    violations.push({ field: "poolId", description: `another tenant shares a pool ${wish.id}: choose another id` });
  }
  if (violations.length > 0) throw new InvalidInput(violations);
}

async function isSharedByAnother({ tx }: ServiceUnit, { tenantId, id }: PoolWish): Promise<boolean> {
  return (await tx.workerPool.count({ where: { id, shared: true, NOT: { tenantId } } })) > 0;
}
