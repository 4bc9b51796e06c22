import type { EnvironmentClass, ProvisioningKind, RunMode } from "../../generated/prisma/client.ts";

export interface ApprovalQuestion {
  kind: ProvisioningKind;
  mode: RunMode;
  environmentClass: EnvironmentClass;
  /** The approval that the run came with, if any. */
  approvalId: string | null;
  /** Whether the plan deletes anything; a replacement does. */
  destructive: boolean;
  /** Whether the specification wants a person to look at a destructive plan. */
  reviewDestructive: boolean;
}

/** Which applies wait in PRODUCTION. A promotion has been approved before: it waits only when nobody says by which. */
const WAITS_IN_PRODUCTION: Readonly<Record<ProvisioningKind, "always" | "without-approval">> = {
  BASELINE: "always",
  RECONCILIATION: "always",
  POOL_RESIZE: "always",
  TEARDOWN: "always",
  PROMOTION: "without-approval",
};

/**
 * Whether somebody has to approve a plan before it is applied. In PRODUCTION every apply waits, but for a promotion
 * that comes with its approval; elsewhere none. A destructive plan of a specification that wants those reviewed waits
 * everywhere, whatever was approved before anybody had seen it; tearing down is destructive whatever the plan counts.
 */
export function approvalDue(question: ApprovalQuestion): boolean {
  const { kind, mode, environmentClass, approvalId, destructive, reviewDestructive } = question;
  if (mode === "PLAN_ONLY") return false;
  if (reviewDestructive && (destructive || mode === "DESTROY")) return true;
  if (environmentClass !== "PRODUCTION") return false;
  return WAITS_IN_PRODUCTION[kind] === "always" || approvalId === null;
}
