/** A plan that neither its approver nor an executor took up in time. */
export const PLAN_EXPIRY = "plan-expiry";
/** An executor that no longer says that it lives. */
export const EXECUTOR_LOST = "executor-lost";
/** Runs that could go on and that no queue knows of. */
export const RUN_QUEUE_SWEEP = "run-queue";
