/** A subscription that the catalogue's list lacks, and why there is one all the same. */
export interface BeyondPages {
  consumer: string;
  event: string;
  handler: string;
  reason: string;
}

/** Decided where the pages leave it open or speak with two voices: both list the consumer at the event itself. */
export const subscriptionsBeyondPages: readonly BeyondPages[] = [
  {
    consumer: "RuntimeEnvironmentService",
    event: "EnvironmentCreated",
    handler: "StartInventory",
    reason: "the event names it as a consumer, and an environment's inventory starts there",
  },
  {
    consumer: "IaCProvisioningService",
    event: "ReconciliationDecided",
    handler: "ConfirmReconciliation",
    reason: "the event names it as a consumer, and an accepted reconciliation must have its run",
  },
];

/** Consumed by the Control Plane, announced by a plane that the catalogue doesn't cover: there is no message of them. */
export const eventsOfOtherPlanes: readonly string[] = ["StepReady", "WorkflowRunCompleted", "WorkflowRunFailed"];
