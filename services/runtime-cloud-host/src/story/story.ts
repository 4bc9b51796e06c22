import { specificationGivesIn } from "./adoption.ts";
import { capacityIsSharedFairly } from "./capacity.ts";
import { driftIsReverted } from "./drift.ts";
import { productionWaitsForApproval, stagingGetsItsBaseline } from "./environments.ts";
import { failureIsToldTruly } from "./failing-program.ts";
import { serviceIsScaledByHand } from "./hand-edit.ts";
import { promotionReachesProduction } from "./promotion.ts";
import { recordGivesIn } from "./refresh.ts";
import type { Stage } from "./stage.ts";
import { releaseIsTakenDown } from "./teardown.ts";

/** The whole loop: desired state, approval, apply, drift, reconciliation, capacity, failure, teardown. Throws StoryFailed. */
export async function playStory(stage: Stage): Promise<void> {
  const staging = await stagingGetsItsBaseline(stage);
  const production = await productionWaitsForApproval(stage);
  const release = await promotionReachesProduction(stage, production);
  await driftIsReverted(stage, release);
  const edit = await serviceIsScaledByHand(stage, release);
  await recordGivesIn(stage, edit);
  await specificationGivesIn(stage, edit);
  await capacityIsSharedFairly(stage);
  await failureIsToldTruly(stage, staging);
  await releaseIsTakenDown(stage, release);
}
