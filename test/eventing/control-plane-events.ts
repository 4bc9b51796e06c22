import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";

/* Events of the Control Plane as their producers would put them on an inbox: plain JSON. */

export function sandboxReleased(data: Record<string, string> = {}, envelope: Partial<CloudEvent> = {}): CloudEvent {
  return event(
    "tooling.sandboxes.v1.sandbox-released",
    { sandboxId: uuidv7(), tenantId: "tenant-a", ...data },
    envelope,
  );
}

export function attemptRecorded(data: Record<string, string> = {}): CloudEvent {
  const ids = { runId: uuidv7(), stepId: uuidv7(), attemptId: uuidv7() };
  return event("run-control.attempts.v1.attempt-outcome-recorded", {
    ...ids,
    outcome: "ATTEMPT_OUTCOME_SUCCEEDED",
    ...data,
  });
}

export function promotionApproved(data: CloudEvent["data"] = {}): CloudEvent {
  return event("promotion.promotions.v1.promotion-approved", {
    promotionId: uuidv7(),
    tenantId: "tenant-a",
    projectId: "project-1",
    environmentId: "environment-1",
    releaseId: uuidv7(),
    approvalId: uuidv7(),
    programVersion: "1.0.0",
    ...data,
  });
}

function event(type: string, data: CloudEvent["data"], envelope: Partial<CloudEvent> = {}): CloudEvent {
  return {
    specversion: "1.0",
    id: uuidv7(),
    source: "/control-plane",
    type,
    datacontenttype: "application/json",
    data,
    tenantid: "tenant-a",
    correlationid: uuidv7(),
    ...envelope,
  };
}
