import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { errorDomain } from "@runtime-cloud/service-kit/error-codes";
import { advanceRun } from "../runs/advance-run.ts";
import { command } from "../command.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { stateKeyOf } from "../execution/engine-job.ts";
import { lockEnvironment } from "../environments/lock-environment.ts";
import { runMessage } from "../runs/run-message.ts";
import type { Run } from "../runs/run-row.ts";
import { findRun } from "../runs/runs.ts";
import { openSalvage } from "./salvaged-state.ts";
import { adoptState } from "../state/adopt-state.ts";
import { supersedeIfOutdated } from "../specifications/supersede-specification.ts";

const { method } = IaCProvisioningService;

export function resolveRoutes(context: Context) {
  return {
    resolveIndeterminate: command(
      context,
      method.resolveIndeterminate,
      async (unit, request, { tenantId, subject }) => {
        const { environmentId } = await findRun(unit.tx, tenantId, request.provisioningRunId);
        await lockEnvironment(unit.tx, tenantId, environmentId);
        const run = await findRun(unit.tx, tenantId, request.provisioningRunId);
        const salvage = request.adoptSalvagedState ? await salvageOf(unit, run) : undefined;

        const { resolution } = request;
        const event = { type: "resolve" as const, at: unit.at, by: subject, resolution };
        const resolved = await advanceRun(context, unit, run, event);
        if (salvage) await adopt(context, unit, run, salvage);
        await breakLock(unit, run);
        await supersedeIfOutdated(context, unit, run.specificationId);
        return { run: runMessage({ ...run, ...resolved }) };
      },
    ),
  } satisfies Partial<ServiceImpl<typeof IaCProvisioningService>>;
}

/** Read before the run is resolved, which lets go of it. */
async function salvageOf({ tx }: ServiceUnit, { id, state }: Run): Promise<Uint8Array | undefined> {
  const { sealedSalvage } = await tx.provisioningRun.findUniqueOrThrow({
    where: { id },
    select: { sealedSalvage: true },
  });
  // In any other state the machine refuses first.
  if (state !== "INDETERMINATE") return undefined;
  if (sealedSalvage !== null) return sealedSalvage;
  throw unadoptable(id, "NO_SALVAGED_STATE", "no state was salvaged; resolve it without adopt_salvaged_state");
}

/** The resolver writes as the run's next executor would: under a higher epoch than the one that left the state. */
async function adopt({ box }: Context, { tx }: ServiceUnit, run: Run, sealed: Uint8Array): Promise<void> {
  const specification = await tx.specification.findUniqueOrThrow({ where: { id: run.specificationId } });
  const { content } = openSalvage({ box }, run.id, sealed);
  const writer = { runId: run.id, epoch: run.executorEpoch + 1 };
  const obstacle = await adoptState(tx, box, stateKeyOf(specification), content, writer);
  if (obstacle === undefined) return;
  throw unadoptable(
    run.id,
    "SALVAGED_STATE_REFUSED",
    `the salvaged state can't be recorded: ${obstacle}. Settle by hand what the recovery manifest lists, and resolve it ` +
      "without adopt_salvaged_state",
  );
}

/** The run's dead engine may hold its state's lock still. */
async function breakLock({ tx }: ServiceUnit, { id: lockRunId, environmentId, tenantId }: Run): Promise<void> {
  await tx.engineState.updateMany({
    where: { tenantId, environmentId, lockRunId },
    data: { lockId: null, lockRunId: null, lockEpoch: null, lockInfo: null, lockedAt: null },
  });
}

/** As a machine's refusal looks, with the way out. */
function unadoptable(id: string, reason: "NO_SALVAGED_STATE" | "SALVAGED_STATE_REFUSED", why: string): ConnectError {
  const metadata = { aggregate: "ProvisioningRun", id, state: "INDETERMINATE", event: "resolve" };
  return new ConnectError(
    `ProvisioningRun ${id} is INDETERMINATE: resolve refused: ${why}`,
    Code.FailedPrecondition,
    undefined,
    [{ desc: ErrorInfoSchema, value: { reason, domain: errorDomain, metadata } }],
  );
}
