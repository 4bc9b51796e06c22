import type { EnvironmentClass, ProvisioningKind, RunMode } from "../generated/prisma/client.ts";

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

/**
 * Whether somebody has to approve a plan before it is applied. In PRODUCTION every apply waits, but for a promotion
 * that comes with its approval; elsewhere none. A destructive plan of a specification that wants those reviewed waits
 * everywhere, whatever was approved before anybody had seen it.
 */
export function approvalDue(question: ApprovalQuestion): boolean {
  const { kind, mode, environmentClass, approvalId, destructive, reviewDestructive } = question;
  if (mode === "PLAN_ONLY") return false;
  if (destructive && reviewDestructive) return true;
  if (environmentClass !== "PRODUCTION") return false;
  return kind !== "PROMOTION" || approvalId === null;
}
