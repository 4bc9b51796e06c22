import type { FieldViolation } from "@runtime-cloud/service-kit/errors";
import type { ProvisioningKind, RunMode, SpecificationKind } from "../../generated/prisma/client.ts";
import type { EngineMode } from "../engines/engine.ts";

const MODES: Readonly<Record<ProvisioningKind, readonly RunMode[]>> = {
  BASELINE: ["APPLY", "PLAN_ONLY"],
  PROMOTION: ["APPLY", "PLAN_ONLY"],
  RECONCILIATION: ["APPLY", "PLAN_ONLY", "REFRESH_ONLY"],
  POOL_RESIZE: ["APPLY", "PLAN_ONLY"],
  TEARDOWN: ["DESTROY", "PLAN_ONLY"],
};

/** The kinds of run that realise one kind of specification only. */
const SPECIFICATION_KINDS: Readonly<Partial<Record<ProvisioningKind, SpecificationKind>>> = {
  BASELINE: "BASELINE",
  PROMOTION: "RELEASE",
  POOL_RESIZE: "WORKER_POOL",
};

/** What is wrong with asking for such a run of such a specification, by the request's fields. */
export function runViolations(kind: ProvisioningKind, mode: RunMode, of: SpecificationKind): FieldViolation[] {
  const violations: FieldViolation[] = [];
  if (!MODES[kind].includes(mode)) {
    violations.push({
      field: "mode",
      description: `${mode} is no mode of ${kind}, which takes ${MODES[kind].join(", ")}`,
    });
  }
  const wanted = SPECIFICATION_KINDS[kind];
  if (wanted !== undefined && wanted !== of) {
    violations.push({ field: "kind", description: `${kind} is for ${wanted} specifications; this one is ${of}` });
  }
  return violations;
}

/** What the engine plans. A run that only plans plans what its kind would do. */
export function engineMode(kind: ProvisioningKind, mode: RunMode): EngineMode {
  if (mode !== "PLAN_ONLY") return mode;
  return kind === "TEARDOWN" ? "DESTROY" : "APPLY";
}
