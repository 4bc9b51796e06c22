import { AttemptOutcomeRecordedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/run_control_pb";
import { SandboxReleasedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/tooling_pb";
import { ProvisioningAppliedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/provisioning_pb";
import { ProvisioningKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { type EventHandler, on } from "@runtime-cloud/eventing/event-handler";
import type { Context, Tx } from "./context.ts";
import { endHolder } from "./desk/ended-holder.ts";
import { provisionedSizes, takeSizes } from "./pools/pool-provisioned.ts";

/** The events that this service takes in. */
export function inbox(context: Context): EventHandler<Tx>[] {
  return [
    on(AttemptOutcomeRecordedSchema, "ReleaseAttemptLease", (unit, { attemptId }, { tenantid: tenantId }) =>
      endHolder(context, unit, { tenantId, holderKind: "Attempt", holderId: attemptId }, "ATTEMPT_OUTCOME"),
    ),
    on(SandboxReleasedSchema, "ReleaseSandboxLease", (unit, { sandboxId }, { tenantid: tenantId }) =>
      endHolder(context, unit, { tenantId, holderKind: "Sandbox", holderId: sandboxId }, "SANDBOX_RELEASED"),
    ),
    on(ProvisioningAppliedSchema, "PoolProvisioned", async (unit, { kind, outputs }, { tenantid: tenantId }) => {
      if (kind === ProvisioningKind.POOL_RESIZE) await takeSizes(context, unit, tenantId, provisionedSizes(outputs));
    }),
  ];
}
