import { FindingState, ReconciliationDirection } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { findingEndsIn, type HandEdit, releasesAre, SCALED, wasNotTouched } from "./hand-edit.ts";
import { expect } from "./narrator.ts";
import { REPLICAS } from "./promotion.ts";
import { accepted, approvedAndApplied, previewed, proposed, shownChanges } from "./reconciliation.ts";
import type { Stage } from "./stage.ts";

/** REFRESH_STATE: the engine's record gives in to what is there. What is declared doesn't, and so the finding stays. */
export async function recordGivesIn(stage: Stage, edit: HandEdit): Promise<void> {
  const { narrator, provisioning } = stage;
  const reviewed = await narrator.step(
    `REFRESH_STATE is proposed: only the engine's record would move, ${REPLICAS} → ${SCALED}`,
    async () => {
      const refresh = await previewed(
        stage,
        await proposed(stage, edit.environmentId, ReconciliationDirection.REFRESH_STATE),
      );
      const shown = shownChanges(refresh);
      expect(shown === `deployment.yaml spec.replicas ${REPLICAS} → ${SCALED}`, `it shows ${shown || "nothing"}`);
      return refresh;
    },
  );
  await narrator.step("accepted and approved, its run has touched no file, and version 1 is in force", async () => {
    const refresh = await accepted(stage, reviewed, "known, and to be decided");
    await approvedAndApplied(stage, refresh, "it changes the record only");
    const { entries } = await provisioning.getReceipt({ provisioningRunId: refresh.provisioningRunId });
    const recorded = entries.filter(({ actions }) => actions.includes("update")).map(({ address }) => address);
    expect(recorded.join() === "deployment.yaml", `it recorded ${recorded.join() || "nothing"}`);
    await wasNotTouched(edit);
    await releasesAre(stage, edit, "1 APPLIED");
  });
  await narrator.step(`the proposal is COMPLETED; version 1 still says ${REPLICAS}, so the finding is OPEN again`, () =>
    findingEndsIn(stage, edit, reviewed, FindingState.OPEN),
  );
}
