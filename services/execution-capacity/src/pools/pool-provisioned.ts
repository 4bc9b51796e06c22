import type { JsonObject } from "@bufbuild/protobuf";
import { MalformedEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { decide } from "@runtime-cloud/state-machines/decide";
import { workerPool } from "@runtime-cloud/state-machines/worker-pool";
import { z } from "zod";
import type { ServiceUnit, Told } from "../context.ts";
import { lockCapacity, settleClaim } from "../capacity/unit-capacity.ts";
import { advancePool, findPool } from "./worker-pool.ts";

const outputsSchema = z.object({
  pools: z.array(z.object({ poolId: z.string(), size: z.int().min(0), generation: z.int() })),
});

/** A size that was provisioned, as the outputs of a POOL_RESIZE run tell. */
export type ProvisionedSize = z.output<typeof outputsSchema>["pools"][number];

/** Reads a run's outputs. Throws MalformedEvent: a pool whose size isn't told would never become active. */
export function provisionedSizes(outputs: JsonObject | undefined): ProvisionedSize[] {
  const read = outputsSchema.safeParse(outputs);
  if (read.success) return read.data.pools;
  const problems = read.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new MalformedEvent(
    `outputs of a POOL_RESIZE run need pools of {poolId, size, generation}: ${problems.join("; ")}`,
  );
}

/** Gives pools their provisioned sizes. Another generation than the wanted one is old news, and so is a size that is. */
export async function takeSizes(
  told: Told,
  unit: ServiceUnit,
  tenantId: string,
  sizes: readonly ProvisionedSize[],
): Promise<void> {
  const pools = sizes.map(({ poolId: id }) => ({ tenantId, id }));
  const claim = { pools };
  await lockCapacity(unit, claim);
  for (const { poolId: id, size, generation } of sizes) {
    const pool = await findPool(unit.tx, { tenantId, id });
    if (pool?.generation !== generation) continue;
    const answered = { resizeDueAt: null, resizeRunId: null };
    await unit.tx.workerPool.update({ where: { tenantId_id: { tenantId, id } }, data: answered });
    if (pool.currentSize === size && pool.state !== "PROVISIONING") continue;
    const event = { type: "provision", size, generation } as const;
    if (decide(workerPool, pool, event).accepted) await advancePool(unit, pool, event);
  }
  await settleClaim(told, unit, claim);
}
