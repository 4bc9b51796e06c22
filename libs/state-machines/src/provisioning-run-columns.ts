import type { JsonObject } from "@bufbuild/protobuf";
import type { ProvisioningKind, RunMode } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { EnumName } from "./enum-name.ts";

export interface RunColumns {
  id: string;
  tenantId: string;
  projectId: string;
  environmentId: string;
  kind: EnumName<typeof ProvisioningKind>;
  mode: EnumName<typeof RunMode>;
  specificationVersion: number;
  promotionId: string | null;
  approvalId: string | null;
  requestedBy: string;
  /** Nobody approves their own run where this is set (PRODUCTION). */
  separateApprover: boolean;
  engine: string | null;
  planDigest: string | null;
  adds: number;
  changes: number;
  deletes: number;
  replaces: number;
  destructive: boolean;
  reason: string | null;
  decidedBy: string | null;
  /** Counts the executors that held this run; every write of an executor carries it. */
  executorEpoch: number;
  executorId: string | null;
  plannedAt: Date | null;
  applyingAt: Date | null;
  endedAt: Date | null;
  expiresAt: Date | null;
}

export type PlanResult = Pick<
  RunColumns,
  "engine" | "planDigest" | "adds" | "changes" | "deletes" | "replaces" | "destructive"
>;

export type RunEvent =
  | { type: "start"; executorId: string }
  | {
      type: "plan";
      at: Date;
      plan: PlanResult;
      /** Nothing to do, outputs and the engine's state included: the counts alone don't tell. */
      noChanges: boolean;
      approvalDue: boolean;
      expiresAt: Date;
      outputs: JsonObject;
    }
  | { type: "approve"; by: string; planDigest: string; approvalId: string | null }
  | { type: "reject"; at: Date; by: string; reason: string }
  | { type: "startApply"; at: Date; executorId: string }
  | { type: "complete"; at: Date; outputs: JsonObject }
  | { type: "completePartially"; at: Date; reason: string }
  | { type: "fail"; at: Date; reason: string }
  | { type: "cancel"; at: Date; by: string; reason: string }
  | { type: "force"; by: string }
  | { type: "stopped"; at: Date }
  /** Without a reason the executor just fell silent. */
  | { type: "loseExecutor"; at: Date; reason?: string }
  | { type: "supersede"; at: Date; reason: string }
  | { type: "expire"; at: Date }
  | { type: "resolve"; at: Date; by: string; resolution: string };
