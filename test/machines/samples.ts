import { capacityLease } from "@runtime-cloud/state-machines/capacity-lease";
import { deploymentSpecification } from "@runtime-cloud/state-machines/deployment-specification";
import { driftFinding } from "@runtime-cloud/state-machines/drift-finding";
import { provisioningRun } from "@runtime-cloud/state-machines/provisioning-run";
import { quota } from "@runtime-cloud/state-machines/quota";
import { reconciliationProposal } from "@runtime-cloud/state-machines/reconciliation-proposal";
import { runtimeInventory } from "@runtime-cloud/state-machines/runtime-inventory";
import { workerPool } from "@runtime-cloud/state-machines/worker-pool";
import type { Sample } from "./explore.ts";

const at = new Date("2026-01-01T12:00:00Z");
const later = new Date("2026-01-01T13:00:00Z");
const ids = {
  id: "0190a0a0-0000-7000-8000-000000000001",
  tenantId: "tenant",
  projectId: "project",
  environmentId: "env",
};
const digest = `sha256:${"0".repeat(64)}`;
const noChange = {
  engine: "manifests",
  planDigest: digest,
  adds: 0,
  changes: 0,
  deletes: 0,
  replaces: 0,
  destructive: false,
};
const someChange = { ...noChange, adds: 1 };
const plan = { type: "plan", at, expiresAt: at, noChanges: false, approvalDue: false, outputs: {} };

const run = {
  ...ids,
  kind: "BASELINE",
  mode: "APPLY",
  specificationVersion: 1,
  promotionId: null,
  approvalId: null,
  requestedBy: "requester",
  separateApprover: true,
  ...noChange,
  engine: null,
  planDigest: null,
  reason: null,
  decidedBy: null,
  executorEpoch: 0,
  executorId: null,
  plannedAt: null,
  applyingAt: null,
  endedAt: null,
  expiresAt: null,
};

export const samples: Sample[] = [
  {
    machine: deploymentSpecification,
    rows: [{ ...ids, kind: "BASELINE", specificationVersion: 1, programVersion: "base@1.0.0", appliedAt: null }],
    events: [{ type: "apply", at }, { type: "supersede" }, { type: "withdraw" }, { type: "remove" }],
  },
  {
    machine: provisioningRun,
    rows: [run, { ...run, mode: "PLAN_ONLY" }],
    events: [
      { type: "start", executorId: "executor" },
      { ...plan, plan: noChange, noChanges: true },
      { ...plan, plan: someChange },
      { ...plan, plan: someChange, approvalDue: true },
      { type: "approve", by: "approver", planDigest: digest, approvalId: null },
      { type: "reject", at, by: "approver", reason: "no" },
      { type: "startApply", at, executorId: "executor" },
      { type: "complete", at, outputs: {} },
      { type: "completePartially", at, reason: "ENGINE_ERROR: a failed" },
      { type: "fail", at, reason: "ENGINE_ERROR: a failed" },
      { type: "cancel", at, by: "operator", reason: "changed my mind" },
      { type: "force", by: "operator" },
      { type: "stopped", at },
      { type: "loseExecutor", at },
      { type: "supersede", at, reason: "newer" },
      { type: "expire", at: later },
      { type: "resolve", at, by: "operator", resolution: "nothing was made" },
    ],
  },
  {
    machine: workerPool,
    rows: [
      {
        ...ids,
        id: "pool",
        kind: "RUN_WORKERS",
        state: "PROVISIONING",
        currentSize: 0,
        desiredSize: 0,
        generation: 0,
        used: 0,
        drainDeadline: null,
        resumeAt: null,
        note: null,
      },
    ],
    events: [
      { type: "resize", size: 2 },
      { type: "requestSize", size: 3 },
      { type: "provision", size: 3, generation: 0 },
      { type: "failProvisioning", reason: "ENGINE_ERROR: a failed", generation: 0 },
      { type: "provision", size: 3, generation: 1 },
      { type: "failProvisioning", reason: "ENGINE_ERROR: a failed", generation: 1 },
      { type: "cordon", note: null, resumeAt: later },
      { type: "uncordon" },
      { type: "drain", deadline: later, note: null },
      { type: "empty" },
      { type: "retire" },
    ],
  },
  {
    machine: quota,
    rows: [{ ...ids, projectId: "", concurrentRuns: 1, concurrentSandboxes: 1, weight: 1 }],
    events: [
      { type: "set", concurrentRuns: 2, concurrentSandboxes: 2, weight: 1 },
      { type: "exceed", projectId: "project", holderKind: "Attempt", holderId: "holder", limit: "concurrentRuns=1" },
      { type: "retire" },
    ],
  },
  {
    machine: capacityLease,
    rows: [
      {
        ...ids,
        holderKind: "Attempt",
        holderId: "holder",
        poolTenantId: "tenant",
        poolId: "pool",
        fencingToken: null,
        grantedAt: null,
        expiresAt: null,
        waitDeadline: later,
        endedAt: null,
        releaseReason: null,
        executionSeconds: null,
      },
    ],
    events: [
      { type: "grant", at, expiresAt: later, fencingToken: 1n, poolTenantId: "tenant", poolId: "other" },
      { type: "renew", at, until: later },
      { type: "release", at, reason: "HOLDER" },
      { type: "expire", at: later },
      { type: "revoke", at, reason: "OPERATOR" },
    ],
  },
  {
    machine: runtimeInventory,
    rows: [{ ...ids, id: "env", currentReleaseId: null, observedAt: null, staleAt: null }],
    events: [
      { type: "observe", at, staleAt: later, currentReleaseId: null, changes: { changes: [] } },
      { type: "expire", at: later },
      { type: "retire" },
    ],
  },
  {
    machine: driftFinding,
    rows: [
      {
        ...ids,
        kind: "ATTRIBUTE_CHANGED",
        resource: "deployment.yaml",
        proposalId: null,
        suppressedReason: null,
        suppressedUntil: null,
        suppressionRuleId: null,
        resolvedAt: null,
      },
    ],
    events: [
      { type: "propose", proposalId: "0190a0a0-0000-7000-8000-000000000002" },
      { type: "reopen" },
      { type: "suppress", reason: "known", until: at, ruleId: null },
      { type: "unsuppress" },
      { type: "expire", at: later },
      { type: "resolve", at },
    ],
  },
  {
    machine: reconciliationProposal,
    rows: [
      {
        ...ids,
        direction: "REVERT_TO_SPECIFICATION",
        destructive: false,
        digest,
        expiresAt: later,
        provisioningRunId: null,
        decidedBy: null,
        decidedAt: null,
        reason: null,
        previewState: "PENDING",
        planDigest: null,
        adoptedId: null,
        supersededBy: null,
      },
      {
        ...ids,
        direction: "ADOPT_OBSERVED",
        destructive: false,
        digest,
        expiresAt: later,
        provisioningRunId: null,
        decidedBy: null,
        decidedAt: null,
        reason: null,
        previewState: "READY",
        planDigest: digest,
        adoptedId: null,
        supersededBy: null,
      },
    ],
    events: [
      { type: "accept", at, by: "operator", digest, reason: null },
      { type: "reject", at, by: "operator", digest, reason: null },
      { type: "preview", planDigest: digest, destructive: true, digest },
      { type: "failPreview" },
      { type: "adopt", adoptedId: "0190a0a0-0000-7000-8000-000000000004" },
      { type: "planRun", provisioningRunId: "0190a0a0-0000-7000-8000-000000000003" },
      { type: "complete" },
      { type: "fail", reason: "PROVISIONING: refused" },
      { type: "expire", at: later },
      { type: "supersede" },
      { type: "lapse" },
    ],
  },
];
