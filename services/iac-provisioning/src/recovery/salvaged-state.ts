import type { Context } from "../context.ts";
import type { Run } from "../runs/run-row.ts";
import { type StateHead, stateHead } from "../state/state-version.ts";

const PURPOSE = "salvaged-state";

/** A state that an engine could not write to its backend. Secret. */
export interface SalvagedState extends StateHead {
  content: Buffer;
}

export function sealSalvage({ box }: Pick<Context, "box">, runId: string, content: Buffer) {
  return new Uint8Array(box.seal(content, PURPOSE, runId));
}

/** Throws SealedValueRefused. */
export function openSalvage({ box }: Pick<Context, "box">, runId: string, sealed: Uint8Array): SalvagedState {
  const content = box.open(sealed, PURPOSE, runId);
  const head = stateHead(content);
  if (!head) throw new Error(`what run ${runId} salvaged is no state`);
  return { ...head, content };
}

/** What a run salvaged; undefined when there is nothing. Throws SealedValueRefused. */
export async function readSalvage(
  { box, client }: Pick<Context, "box" | "client">,
  { id }: Pick<Run, "id">,
): Promise<SalvagedState | undefined> {
  const { sealedSalvage } = await client.provisioningRun.findUniqueOrThrow({
    where: { id },
    select: { sealedSalvage: true },
  });
  return sealedSalvage === null ? undefined : openSalvage({ box }, id, sealedSalvage);
}

/**
 * Keeps a sealed state with its run, for the operator who resolves it; the first one that comes. `unwanted`: the run is
 * over, so somebody has settled what it did. `unknown`: there is no such run here.
 */
export async function keepSalvage(
  { pool }: Pick<Context, "pool">,
  runId: string,
  sealed: Uint8Array,
): Promise<"kept" | "unwanted" | "unknown"> {
  const { rows } = await pool.query<{ kept: boolean }>(KEEP, [runId, sealed]);
  if (!rows[0]) return "unknown";
  return rows[0].kept ? "kept" : "unwanted";
}

/** An executor that wrote the state after all clears it as its run ends. */
const KEEP = `
  WITH run AS (
    SELECT id, applying_at IS NOT NULL AND state IN ('APPLYING', 'CANCELLING', 'INDETERMINATE') AS kept
    FROM provisioning_run WHERE id = $1 FOR UPDATE
  ), keeping AS (
    UPDATE provisioning_run SET sealed_salvage = coalesce(sealed_salvage, $2)
    FROM run WHERE provisioning_run.id = run.id AND run.kept
  )
  SELECT kept FROM run`;
