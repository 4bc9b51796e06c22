import { type CloudEvent, MalformedEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import { PromotionApprovedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/promotion_pb";
import { ApprovalDecidedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/run_control_pb";
import { ReconciliationDecidedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/inventory_pb";
import { type EventHandler, on } from "@runtime-cloud/eventing/event-handler";
import { applyApproval } from "./runs/apply-approval.ts";
import { confirmReconciliation } from "./runs/confirm-reconciliation.ts";
import type { Context, Tx } from "./context.ts";
import { provisionBaseline } from "./specifications/provision-baseline.ts";
import { provisionPromotion } from "./specifications/provision-promotion.ts";

/** What this service does about other services' events; the names are the contract's. */
export function inbox(context: Context): EventHandler<Tx>[] {
  return [
    on(EnvironmentCreatedSchema, "ProvisionBaseline", async (unit, created, event) => {
      refuseOtherTenant(created, event);
      await provisionBaseline(context, unit, created);
    }),
    on(PromotionApprovedSchema, "ProvisionPromotion", async (unit, approved, event) => {
      refuseOtherTenant(approved, event);
      await provisionPromotion(context, unit, approved);
    }),
    on(ApprovalDecidedSchema, "ApplyApproval", async (unit, decided, event) => {
      refuseOtherTenant(decided, event);
      await applyApproval(context, unit, decided, event);
    }),
    on(ReconciliationDecidedSchema, "ConfirmReconciliation", async (unit, decided, event) => {
      refuseOtherTenant(decided, event);
      await confirmReconciliation(context, unit, decided);
    }),
  ];
}

/** An envelope and its message speak of one tenant, or nobody knows of which. */
function refuseOtherTenant({ tenantId }: { tenantId: string }, { tenantid }: CloudEvent): void {
  if (tenantId !== tenantid) throw new MalformedEvent("tenantId is not the envelope's tenantid");
}
