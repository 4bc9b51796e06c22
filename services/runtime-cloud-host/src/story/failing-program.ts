import type { MessageInitShape } from "@bufbuild/protobuf";
import { PromotionApprovedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/promotion_pb";
import type {
  LogLine,
  TailProvisioningLogRequestSchema,
} from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/run_streams_pb";
import {
  ProvisioningKind,
  ResourceOutcome,
  RunState,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { eventually } from "./eventually.ts";
import { expect } from "./narrator.ts";
import { newestRun } from "./runs.ts";
import type { Stage } from "./stage.ts";

/** A program that fails halfway: the failure names the resource, and the receipt tells what was done. */
export async function failureIsToldTruly(stage: Stage, environmentId: string): Promise<void> {
  const { narrator, tenantId, projectId } = stage;
  const promotionId = stage.newId();
  narrator.chapter("7. A program fails halfway");
  await narrator.step(`PromotionApproved hands over ${stage.programs.broken}`, () =>
    stage.controlPlane.announce(
      PromotionApprovedSchema,
      { id: promotionId, tenantId, projectId },
      {
        promotionId,
        tenantId,
        projectId,
        environmentId,
        releaseId: stage.newId(),
        approvalId: stage.newId(),
        programVersion: stage.programs.broken,
        parameters: {},
      },
    ),
  );
  const run = await narrator.step("the run ends PARTIALLY_APPLIED", async () => {
    const { provisioningRunId } = await newestRun(
      stage,
      environmentId,
      ({ kind }) => kind === ProvisioningKind.PROMOTION,
    );
    return eventually("the run's end", async () => {
      const { run: seen } = await stage.provisioning.getProvisioningRun({ provisioningRunId });
      if (seen?.state === RunState.PARTIALLY_APPLIED) return seen;
      throw new Error(`it is ${RunState[seen?.state ?? 0]} (${seen?.reason ?? "no reason"})`);
    });
  });
  const failing = await narrator.step(
    "the receipt shows what was applied, what failed and what was not tried",
    async () => {
      const { entries } = await stage.provisioning.getReceipt({ provisioningRunId: run.provisioningRunId });
      const outcomes = new Set(entries.map(({ outcome }) => ResourceOutcome[outcome]));
      for (const outcome of ["APPLIED", "FAILED", "NOT_ATTEMPTED"])
        expect(outcomes.has(outcome), `nothing is ${outcome}`);
      return entries.find(({ outcome }) => outcome === ResourceOutcome.FAILED)?.address ?? "";
    },
  );
  await narrator.step("the engine's log says why, and goes on after the last line that was read", async () => {
    const { provisioningRunId } = run;
    const lines = await logLines(stage, { provisioningRunId, follow: true });
    expect(
      lines.some(({ text }) => text.includes(failing)),
      `none of its ${lines.length} lines names ${failing}`,
    );
    const rest = await logLines(stage, { provisioningRunId, afterNumber: lines.at(-1)?.number ?? 0 });
    expect(rest.length === 0, `there are ${rest.length} lines more`);
  });
  await narrator.step(`ProvisioningFailed names ${failing}`, async () => {
    const event = await eventually(
      "ProvisioningFailed",
      () => stage.audience.heard("ProvisioningFailed", ({ subject }) => subject === run.provisioningRunId)[0],
    );
    expect(JSON.stringify(event.data.reason).includes(failing), `its reason is ${JSON.stringify(event.data.reason)}`);
  });
}

async function logLines({ provisioning }: Stage, request: MessageInitShape<typeof TailProvisioningLogRequestSchema>) {
  const lines: LogLine[] = [];
  for await (const page of provisioning.tailProvisioningLog(request)) lines.push(...page.lines);
  return lines;
}
