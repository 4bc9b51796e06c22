import { capacityIsSharedFairly } from "./capacity.ts";
import { driftIsReconciled } from "./drift.ts";
import { productionWaitsForApproval, stagingGetsItsBaseline } from "./environments.ts";
import { failureIsToldTruly } from "./failing-program.ts";
import { promotionReachesProduction } from "./promotion.ts";
import type { Stage } from "./stage.ts";
import { releaseIsTakenDown } from "./teardown.ts";

/** The whole loop: desired state, approval, apply, drift, reconciliation, capacity, failure, teardown. Throws StoryFailed. */
export async function playStory(stage: Stage): Promise<void> {
  const staging = await stagingGetsItsBaseline(stage);
  const production = await productionWaitsForApproval(stage);
  const release = await promotionReachesProduction(stage, production);
  await driftIsReconciled(stage, release);
  await capacityIsSharedFairly(stage);
  await failureIsToldTruly(stage, staging);
  await releaseIsTakenDown(stage, release);
}
