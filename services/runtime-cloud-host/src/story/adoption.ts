import { FindingState, ReconciliationDirection } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { inventoryIsFreshAndInSync } from "./environments.ts";
import { findingEndsIn, type HandEdit, releasesAre, SCALED, wasNotTouched } from "./hand-edit.ts";
import { expect } from "./narrator.ts";
import { REPLICAS } from "./promotion.ts";
import { accepted, approvedAndApplied, previewed, proposed, shownChanges } from "./reconciliation.ts";
import type { Stage } from "./stage.ts";

/** ADOPT_OBSERVED: the specification gives in to what is there, by a new version that says it. */
export async function specificationGivesIn(stage: Stage, edit: HandEdit): Promise<void> {
  const { narrator, provisioning } = stage;
  const { environmentId } = edit;
  const reviewed = await narrator.step(
    `ADOPT_OBSERVED is proposed: parameter replicas would move, ${REPLICAS} → ${SCALED}`,
    async () => {
      const adoption = await previewed(
        stage,
        await proposed(stage, environmentId, ReconciliationDirection.ADOPT_OBSERVED),
      );
      const shown = shownChanges(adoption);
      expect(shown === `parameters.replicas value ${REPLICAS} → ${SCALED}`, `it shows ${shown || "nothing"}`);
      return adoption;
    },
  );
  const adoption = await narrator.step(
    "accepted by its digest, it has version 2 declared and a run planned",
    async () => {
      const planned = await accepted(stage, reviewed, "traffic has grown");
      await releasesAre(stage, edit, "2 DECLARED, 1 APPLIED");
      return planned;
    },
  );
  await narrator.step(
    `approved and applied, version 2 is in force and says ${SCALED}; no file was touched`,
    async () => {
      await approvedAndApplied(stage, adoption, "it is there already");
      await releasesAre(stage, edit, "2 APPLIED, 1 SUPERSEDED");
      const { specification } = await provisioning.getSpecification({
        specificationId: adoption.adoptedSpecificationId ?? "",
      });
      const replicas = specification?.parameters?.["replicas"];
      expect(specification?.version === 2 && replicas === SCALED, `it says ${JSON.stringify(replicas)}`);
      await wasNotTouched(edit);
    },
  );
  await narrator.step("the next look finds no drift: the finding is RESOLVED, the proposal COMPLETED", () =>
    findingEndsIn(stage, edit, reviewed, FindingState.RESOLVED),
  );
  await inventoryIsFreshAndInSync(stage, environmentId);
}
