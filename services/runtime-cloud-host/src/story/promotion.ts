import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { PromotionApprovedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/promotion_pb";
import { ProvisioningKind, RunState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { eventually } from "./eventually.ts";
import { expect } from "./narrator.ts";
import { newestRun, runIn } from "./runs.ts";
import type { Stage } from "./stage.ts";

/** Where the promoted service's manifests are. */
export interface PromotedRelease {
  environmentId: string;
  releaseId: string;
  directory: string;
}

export const REPLICAS = 3;

/** A promotion hands over its desired state; its approval is reused, so nothing waits. */
export async function promotionReachesProduction(stage: Stage, environmentId: string): Promise<PromotedRelease> {
  const { narrator, tenantId, projectId, controlPlane } = stage;
  narrator.chapter("3. A release is promoted to PRODUCTION");
  const promotion = { promotionId: stage.newId(), releaseId: stage.newId(), approvalId: stage.newId() };
  await narrator.step("PromotionApproved is on the inbox", () =>
    controlPlane.announce(
      PromotionApprovedSchema,
      { id: promotion.promotionId, tenantId, projectId },
      {
        ...promotion,
        tenantId,
        projectId,
        environmentId,
        programVersion: "web-service@1.0.0",
        parameters: { name: "storefront", environment: "production", version: "2.4.1", replicas: REPLICAS },
        approvedBy: "release-manager",
      },
    ),
  );
  await narrator.step("RELEASE is declared, planned with the promotion's approval, applied", async () => {
    const { provisioningRunId } = await newestRun(
      stage,
      environmentId,
      (run) => run.kind === ProvisioningKind.PROMOTION,
    );
    const run = await runIn(stage, provisioningRunId, RunState.APPLIED);
    expect(run.promotionId === promotion.promotionId, "the run doesn't name its promotion");
    expect(run.approvalId === promotion.approvalId, "the run doesn't reuse the promotion's approval");
  });
  const directory = join(stage.targetsDir, tenantId, environmentId, "release");
  await narrator.step("the manifests engine has written real files", async () => {
    const deployment = await readFile(join(directory, "deployment.yaml"), "utf8");
    expect(deployment.includes("2.4.1"), "deployment.yaml doesn't name the version");
    expect(existsSync(join(directory, "service.yaml")), "service.yaml is missing");
  });
  await narrator.step("the inventory names the release and its components", async () => {
    await eventually("the release in the inventory", async () => {
      const { environment } = await stage.environments.getEnvironment({ environmentId });
      const component = environment?.components.find(({ name }) => name === "storefront");
      return environment?.currentReleaseId === promotion.releaseId && component?.version === "2.4.1" ? true : undefined;
    });
  });
  return { environmentId, releaseId: promotion.releaseId, directory };
}
