import type { PromotionApproved } from "@runtime-cloud/contracts/runtimecloud/events/v1/promotion_pb";
import type { Context, ServiceUnit } from "../context.ts";
import { declareSpecification } from "./declare.ts";
import { planRun } from "../runs/plan-run.ts";

/** Who asked, where the event doesn't name a person. */
const PRODUCER = "EnvironmentPromotionService";
const MAX_NAME_LENGTH = 200;

/** PromotionApproved: declares the release and plans it, once, with the approval that it has. */
export async function provisionPromotion(
  context: Context,
  unit: ServiceUnit,
  approved: PromotionApproved,
): Promise<void> {
  const { promotionId, tenantId, environmentId, releaseId, approvalId, programVersion, parameters = {} } = approved;
  const requestedBy = (approved.approvedBy || PRODUCER).slice(0, MAX_NAME_LENGTH);
  const planned = await unit.tx.provisioningRun.count({ where: { tenantId, promotionId } });
  if (planned > 0) return;

  const specification = await declareSpecification(context, unit, {
    tenantId,
    environmentId,
    kind: "RELEASE",
    programVersion,
    parameters,
    reviewDestructive: false,
    releaseId,
    declaredBy: requestedBy,
  });
  await planRun(context, unit, {
    specification,
    kind: "PROMOTION",
    mode: "APPLY",
    requestedBy,
    promotionId,
    approvalId,
  });
}
