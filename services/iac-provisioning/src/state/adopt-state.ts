import type { Tx } from "../context.ts";
import type { SecretBox } from "./secret-box.ts";
import type { StateKey } from "./state-key.ts";
import type { StateVersion } from "./state-store.ts";
import { MAX_STATE_BYTES, sealState, stateHead } from "./state-version.ts";

/** Who writes: no other run may hold the state's lock meanwhile. */
export interface StateWriter {
  readonly runId: string;
  readonly epoch: number;
}

/**
 * Makes a state that its engine could not write the next recorded version, in the transaction that says what that means
 * for its run. By the rules of every write: the recorded lineage, or the first one, and a newer serial; the very version
 * that is recorded counts as written. Undefined when done, else what stands in the way, for a person.
 */
export async function adoptState(
  tx: Tx,
  box: SecretBox,
  key: StateKey,
  content: Buffer,
  writer: StateWriter,
): Promise<string | undefined> {
  if (content.length > MAX_STATE_BYTES) {
    return `it has ${content.length} bytes, and a state may have ${MAX_STATE_BYTES}: split the program`;
  }
  const head = stateHead(content);
  if (!head) return "it is no state: it has no lineage and serial";
  const version = sealState(box, key, content, head);
  return (await writeNext(tx, key, version, writer)) ? undefined : whyRefused(tx, key, version, writer);
}

async function writeNext(
  tx: Tx,
  { tenantId, environmentId, kind }: StateKey,
  { lineage, serial, digest, sealed }: StateVersion,
  { runId, epoch }: StateWriter,
): Promise<boolean> {
  const written = await tx.$executeRaw`
    WITH next AS (
      INSERT INTO engine_state AS state (tenant_id, environment_id, kind, lineage, serial, updated_at)
      VALUES (${tenantId}, ${environmentId}, ${kind}, ${lineage}, ${serial}, clock_timestamp())
      ON CONFLICT (tenant_id, environment_id, kind) DO UPDATE
      SET lineage = excluded.lineage, serial = excluded.serial, removed_at = NULL, updated_at = clock_timestamp()
      WHERE (state.lock_run_id IS NULL OR state.lock_run_id = ${runId})
        AND (state.lineage IS NULL
          OR (state.lineage = excluded.lineage AND state.serial < excluded.serial)
          OR (state.lineage <> excluded.lineage AND state.removed_at IS NOT NULL))
      RETURNING 1
    )
    INSERT INTO engine_state_version
      (tenant_id, environment_id, kind, lineage, serial, digest, sealed, run_id, epoch, written_at)
    SELECT ${tenantId}, ${environmentId}, ${kind}, ${lineage}, ${serial}, ${digest}, ${sealed}::bytea, ${runId},
      ${epoch}, clock_timestamp()
    FROM next`;
  return written === 1;
}

async function whyRefused(
  tx: Tx,
  key: StateKey,
  { lineage, serial, digest }: StateVersion,
  { runId }: StateWriter,
): Promise<string | undefined> {
  const state = await tx.engineState.findUnique({ where: { tenantId_environmentId_kind: key } });
  if (state?.lockRunId && state.lockRunId !== runId) {
    return `run ${state.lockRunId} holds the state's lock: try again when it has ended`;
  }
  if (state?.lineage !== lineage) {
    return `its lineage is ${lineage}, and the recorded state's is ${state?.lineage}: it is not a version of that state`;
  }
  const current = await tx.engineStateVersion.findUnique({
    where: { tenantId_environmentId_kind_lineage_serial: { ...key, lineage, serial } },
    select: { digest: true },
  });
  if (state.serial === serial && current?.digest === digest) return undefined;
  return `its serial is ${serial}, and the recorded state is at serial ${state.serial} already`;
}
