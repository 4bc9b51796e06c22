import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import {
  DriftKind,
  FindingState,
  ProposalState,
  ReconciliationDirection,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { editFile } from "./edit-file.ts";
import { inventoryIsFreshAndInSync } from "./environments.ts";
import { eventually } from "./eventually.ts";
import { expect } from "./narrator.ts";
import { type PromotedRelease, REPLICAS } from "./promotion.ts";
import { accepted, approvedAndApplied, previewed, proposed } from "./reconciliation.ts";
import type { Stage } from "./stage.ts";

/** Somebody changes files by hand; an operator has them put right. */
export async function driftIsReverted(stage: Stage, { environmentId, directory }: PromotedRelease): Promise<void> {
  const { narrator, environments, tenantId } = stage;
  const deployment = join(directory, "deployment.yaml");
  const service = join(directory, "service.yaml");
  narrator.chapter("4. Somebody edits one of those files and deletes another");

  const findings = await narrator.step("an observation finds exactly the two drifts", async () => {
    await editFile(deployment, (text) => text.replace(`replicas: ${REPLICAS}`, "replicas: 1"));
    await rm(service);
    await environments.observeEnvironment({ environmentId });
    const { findings: found } = await environments.listFindings({ environmentId, state: FindingState.OPEN });
    const seen = found
      .map(({ kind, resource, attribute }) => `${DriftKind[kind]} ${resource} ${attribute}`.trim())
      .sort();
    expect(
      seen.join("; ") === "ATTRIBUTE_CHANGED deployment.yaml spec.replicas; RESOURCE_MISSING service.yaml",
      `it found ${seen.join("; ") || "nothing"}`,
    );
    return found;
  });
  await narrator.step("RuntimeDriftDetected is announced once for each", () =>
    eventually("two RuntimeDriftDetected", () => {
      const ids = findings.map(({ findingId }) => findingId);
      const heard = stage.audience.heard("RuntimeDriftDetected", ({ subject = "" }) => ids.includes(subject));
      return heard.length === ids.length ? true : undefined;
    }),
  );
  const proposal = await narrator.step("REVERT_TO_SPECIFICATION is proposed for both, to be reviewed", async () => {
    const made = await proposed(stage, environmentId, ReconciliationDirection.REVERT_TO_SPECIFICATION);
    expect(made.findingIds.length === findings.length, `it covers ${made.findingIds.length} findings`);
    return made;
  });
  const reviewed = await narrator.step("its preview shows what a run would do: it destroys nothing", async () => {
    const seen = await previewed(stage, proposal);
    expect(!seen.destructive && (seen.preview?.changes.length ?? 0) > 0, "it shows no changes, or destroys");
    return seen;
  });
  const revert = await narrator.step("DecideReconciliation accepts it, and a run is planned", () =>
    accepted(stage, reviewed, "drift by hand"),
  );
  await narrator.step("in production the run waits for another person's approval of its plan's digest", () =>
    approvedAndApplied(stage, revert, "puts back what was approved"),
  );
  await narrator.step("the files are right again", async () => {
    expect((await readFile(deployment, "utf8")).includes(`replicas: ${REPLICAS}`), "deployment.yaml is still edited");
    expect(existsSync(service), "service.yaml is still missing");
  });
  await narrator.step("the findings are RESOLVED and the proposal is COMPLETED", () =>
    eventually("RESOLVED and COMPLETED", async () => {
      const { findings: resolved } = await environments.listFindings({ environmentId, state: FindingState.RESOLVED });
      const { proposal: ended } = await environments.getProposal({ proposalId: proposal.proposalId });
      const done = resolved.length === findings.length && ended?.state === ProposalState.COMPLETED;
      if (!done)
        throw new Error(`${resolved.length} are resolved, the proposal is ${ProposalState[ended?.state ?? 0]}`);
      return true;
    }),
  );
  await narrator.step("ReconciliationDecided was announced once", () =>
    eventually("ReconciliationDecided", () => {
      const heard = stage.audience.heard("ReconciliationDecided", (event) => event.tenantid === tenantId);
      return heard.length === 1 ? true : undefined;
    }),
  );
  await inventoryIsFreshAndInSync(stage, environmentId);
}
