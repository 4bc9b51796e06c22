import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import {
  type RecoveryEntrySchema,
  RecoveryProblem,
  type SalvagedStateSchema,
} from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import { NotFound } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Context } from "../context.ts";
import { stateKeyOf } from "../execution/engine-job.ts";
import type { EngineName } from "../engines/engine.ts";
import { type StateInventory, stateInventory } from "../engines/state-inventory.ts";
import { recoveryProblem } from "./recovery-problem.ts";
import type { Run } from "../runs/run-row.ts";
import { findRun } from "../runs/runs.ts";
import { readSalvage } from "./salvaged-state.ts";
import { openState } from "../state/state-version.ts";

export function recoveryRoutes(context: Context) {
  return {
    async getRecoveryManifest({ provisioningRunId }, call) {
      const run = await findRun(context.client, principalOf(call).tenantId, provisioningRunId);
      refuseUnapplied(run);
      const recorded = await recordedState(context, run);
      const entries = isCompared(run, recorded) ? await recoveryEntries(context, run, recorded) : [];
      return {
        entries,
        recordedSerial: recorded.version && BigInt(recorded.version.serial),
        salvagedState: await salvagedState(context, run, recorded),
      };
    },
  } satisfies Partial<ServiceImpl<typeof IaCProvisioningService>>;
}

function refuseUnapplied({ id, state, applyingAt, reason }: Run): void {
  if (!applyingAt) {
    const because = reason === null ? "" : ` (${reason})`;
    throw new NotFound(`run ${id} is ${state}: it applied nothing, so there is nothing to recover${because}`);
  }
  if (state === "APPLYING" || state === "CANCELLING") {
    throw new NotFound(`run ${id} is ${state}: what there is to recover is known when it has ended`);
  }
}

/** The state as it is recorded now, and who wrote it. */
interface RecordedState {
  version: { serial: number; runId: string; epoch: number; writtenAt: Date } | undefined;
  inventory: StateInventory;
}

async function recordedState(context: Context, run: Run): Promise<RecordedState> {
  const specification = await context.client.specification.findUniqueOrThrow({ where: { id: run.specificationId } });
  const key = stateKeyOf(specification);
  const current = await context.states.read(key);
  if (!current) return { version: undefined, inventory: stateInventory(engineOf(run), "") };
  const { lineage, serial } = current;
  const version = await context.client.engineStateVersion.findUniqueOrThrow({
    where: { tenantId_environmentId_kind_lineage_serial: { ...key, lineage, serial } },
    select: { serial: true, runId: true, epoch: true, writtenAt: true },
  });
  const text = openState(context.box, key, current).toString("utf8");
  return { version, inventory: stateInventory(engineOf(run), text) };
}

/** An engine that ended in order recorded what it did; and what a later run recorded says nothing of this one. */
function isCompared(run: Run, { version }: RecordedState): boolean {
  if (run.state !== "INDETERMINATE" && run.state !== "RESOLVED") return false;
  return !version || version.runId === run.id || run.applyingAt === null || version.writtenAt < run.applyingAt;
}

async function recoveryEntries(
  { client }: Context,
  run: Run,
  { version, inventory }: RecordedState,
): Promise<MessageInitShape<typeof RecoveryEntrySchema>[]> {
  const receipt = await client.receiptEntry.findMany({ where: { runId: run.id }, orderBy: { ordinal: "asc" } });
  const isAdopted = version?.runId === run.id && version.epoch > run.executorEpoch;
  return receipt.flatMap((entry) => {
    const problem = recoveryProblem(entry, inventory, isAdopted);
    if (problem === undefined) return [];
    const { address, resourceType, resourceId } = entry;
    return [{ address, resourceType, resourceId: resourceId ?? undefined, problem: RecoveryProblem[problem] }];
  });
}

async function salvagedState(
  context: Context,
  run: Run,
  { inventory }: RecordedState,
): Promise<MessageInitShape<typeof SalvagedStateSchema> | undefined> {
  const salvaged = await readSalvage(context, run);
  if (!salvaged) return undefined;
  const { addresses } = stateInventory(engineOf(run), salvaged.content.toString("utf8"));
  return {
    lineage: salvaged.lineage,
    serial: BigInt(salvaged.serial),
    additionalAddresses: addresses.filter((address) => !inventory.has(address)),
  };
}

/** The first word of `terraform 1.11.4`, as far as states differ. */
function engineOf({ engine }: Run): EngineName {
  return engine?.startsWith("manifests") ? "manifests" : "terraform";
}
