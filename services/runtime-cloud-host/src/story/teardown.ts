import { existsSync } from "node:fs";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  ProvisioningKind,
  ResourceOutcome,
  RunMode,
  RunState,
  SpecificationKind,
  SpecificationState,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { expect } from "./narrator.ts";
import type { PromotedRelease } from "./promotion.ts";
import { runIn } from "./runs.ts";
import type { Stage } from "./stage.ts";

/** What destroys in production waits: it may be cancelled, and only another person approves it, by its plan's digest. */
export async function releaseIsTakenDown(stage: Stage, { environmentId, directory }: PromotedRelease): Promise<void> {
  const { narrator, provisioning, approver } = stage;
  narrator.chapter("8. The release is to be taken down");
  const specificationId = await appliedRelease(stage, environmentId);

  const first = await narrator.step("a teardown is planned, and waits: it destroys", () =>
    plannedTeardown(stage, specificationId),
  );
  await narrator.step("CancelProvisioning: the operator thinks better of it, and nothing was touched", async () => {
    const { provisioningRunId } = first;
    await provisioning.cancelProvisioning({ provisioningRunId, reason: "not before the weekend" });
    const cancelled = await runIn(stage, provisioningRunId, RunState.CANCELLED);
    expect(cancelled.reason?.includes("not before the weekend") ?? false, `its reason is ${cancelled.reason}`);
    expect(existsSync(join(directory, "deployment.yaml")), "deployment.yaml is gone");
  });
  const second = await narrator.step("planned again, it has a plan of its own to review", () =>
    plannedTeardown(stage, specificationId),
  );
  const { provisioningRunId, planDigest = "" } = second;
  await narrator.step("who asked for it may not approve it, and nobody approves another plan's digest", async () => {
    const another = planDigest.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    await refused(Code.PermissionDenied, () => provisioning.approveProvisioning({ provisioningRunId, planDigest }));
    await refused(Code.FailedPrecondition, () =>
      approver.approveProvisioning({ provisioningRunId, planDigest: another }),
    );
  });
  await narrator.step(
    "another person approves exactly this plan: APPLIED, the receipt says what was deleted",
    async () => {
      await approver.approveProvisioning({ provisioningRunId, planDigest, reason: "the service has moved" });
      await runIn(stage, provisioningRunId, RunState.APPLIED);
      const { entries } = await provisioning.getReceipt({ provisioningRunId });
      const deleted = entries.filter(({ actions }) => actions.includes("delete"));
      expect(deleted.length > 0, "nothing was deleted");
      expect(
        deleted.every(({ outcome }) => outcome === ResourceOutcome.APPLIED),
        "something wasn't deleted",
      );
      expect(!existsSync(join(directory, "deployment.yaml")), "deployment.yaml is still there");
    },
  );
}

async function appliedRelease({ provisioning }: Stage, environmentId: string): Promise<string> {
  const { specifications } = await provisioning.listSpecifications({ environmentId, kind: SpecificationKind.RELEASE });
  const applied = specifications.find(({ state }) => state === SpecificationState.APPLIED);
  expect(applied !== undefined, "no release is applied");
  return applied.specificationId;
}

async function plannedTeardown(stage: Stage, specificationId: string) {
  const { run } = await stage.provisioning.planProvisioning({
    specificationId,
    kind: ProvisioningKind.TEARDOWN,
    mode: RunMode.DESTROY,
  });
  const waiting = await runIn(stage, run?.provisioningRunId ?? "", RunState.AWAITING_APPROVAL);
  expect(waiting.planSummary?.destructive ?? false, "its plan isn't destructive");
  return waiting;
}

async function refused(code: Code, call: () => Promise<unknown>): Promise<void> {
  const answer = await call().then(
    () => undefined,
    (error: unknown) => ConnectError.from(error),
  );
  expect(answer?.code === code, answer ? answer.message : `it was approved; ${Code[code]} was to be answered`);
}
