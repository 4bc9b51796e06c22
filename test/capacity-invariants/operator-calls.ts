import { PoolScaling } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { type Answer, seenMessage } from "./answers.ts";
import type { Call, Stage } from "./call.ts";
import { type CastPool, type Holder, poolRequest } from "./cast.ts";
import type { Remembered } from "./memory.ts";
import type { Operation } from "./operations.ts";

/* What operators and other services do: by RPC, by event, by time. */

const done: Answer = { done: true };
const REFUSED_BY_STATE = ["IllegalTransition"];

export function setPoolCall(pool: CastPool, { newId }: Pick<Stage, "newId">, size = pool.size): Call {
  const request = { ...poolRequest(pool), size, scaling: PoolScaling.STATIC, idempotencyKey: newId() };
  return silent(`size ${size} for ${pool.poolId}`, REFUSED_BY_STATE, (service) =>
    service.as(pool.tenantId).setWorkerPool(request),
  );
}

export function cordonCall({ tenantId, poolId }: CastPool, resumes: boolean, { newId }: Stage): Call {
  const request = { poolId, idempotencyKey: newId(), ...(resumes && { resumeAfter: { seconds: RESUMES_AFTER } }) };
  return silent(`cordon ${poolId}${resumes ? " for a while" : ""}`, REFUSED_BY_STATE, (service) =>
    service.as(tenantId).cordonPool(request),
  );
}

const RESUMES_AFTER = 150n;

export function uncordonCall({ tenantId, poolId }: CastPool, { newId }: Stage): Call {
  const request = { poolId, idempotencyKey: newId() };
  return silent(`uncordon ${poolId}`, REFUSED_BY_STATE, (service) => service.as(tenantId).uncordonPool(request));
}

export function drainCall({ tenantId, poolId }: CastPool, withinSeconds: number, { newId }: Stage): Call {
  const request = { poolId, within: { seconds: BigInt(withinSeconds) }, idempotencyKey: newId() };
  return silent(`drain ${poolId} within ${withinSeconds} s`, REFUSED_BY_STATE, (service) =>
    service.as(tenantId).drainPool(request),
  );
}

export function setQuotaCall(step: Operation & { kind: "setQuota" }, { cast, newId }: Stage): Call {
  const { runs: concurrentRuns, sandboxes: concurrentSandboxes, weight } = step;
  const scope = scopeOf(step, cast);
  const request = { ...scope.project, concurrentRuns, concurrentSandboxes, weight, idempotencyKey: newId() };
  return silent(`quota of ${scope.says}: ${concurrentRuns} runs, ${concurrentSandboxes} sandboxes`, [], (service) =>
    service.as(scope.tenantId).setQuota(request),
  );
}

export function retireQuotaCall(step: Operation & { kind: "retireQuota" }, { cast, newId }: Stage): Call {
  const scope = scopeOf(step, cast);
  const idempotencyKey = newId();
  return silent(`no quota of ${scope.says}`, ["NotFound", ...REFUSED_BY_STATE], async (service) => {
    const { quota } = await service.as(scope.tenantId).getQuota(scope.project);
    await service.as(scope.tenantId).retireQuota({ quotaId: quota?.quotaId ?? "", idempotencyKey });
  });
}

export function revokeCall({ leaseId, tenantId }: Remembered, { memory, newId }: Stage): Call {
  const request = { leaseId, idempotencyKey: newId() };
  return {
    says: `revoke ${leaseId} of ${tenantId}`,
    async run(service) {
      const { lease } = await service.as(tenantId).revokeLease(request);
      return lease ? { lease: seenMessage(lease) } : done;
    },
    refusals: REFUSED_BY_STATE,
    ends: { leaseIds: [leaseId] },
    judge: (answer) => ("lease" in answer ? memory.contradictions(answer.lease) : []),
  };
}

/** Told by one event, which comes several times at once, and by another that says the same. */
export function endHolderCall(holder: Holder, deliveries: number, { cast, memory, newId }: Stage): Call {
  const events = [endOf(holder, newId), endOf(holder, newId)].slice(0, deliveries);
  return {
    says: `end ${holder.holderKind} ${holder.holderId} of ${holder.tenantId}, told ${deliveries} times`,
    async run(service) {
      await Promise.all(Array.from({ length: deliveries }, (_, n) => service.deliver(events[n % events.length])));
      return done;
    },
    refusals: [],
    times: deliveries,
    ends: { holders: [holder] },
    judge() {
      memory.holderEnded(holder);
      cast.replaceHolder(holder.holderId);
      return [];
    },
  };
}

export function deadlinesCall(): Call {
  return silent("all that is due", [], (service) => service.runDeadlines());
}

function silent(says: string, refusals: readonly string[], act: (service: Service) => Promise<unknown>): Call {
  return {
    ...{ says, refusals },
    run: async (service) => {
      await act(service);
      return done;
    },
    judge: () => [],
  };
}

type Service = Parameters<Call["run"]>[0];

function scopeOf({ tenant, project }: { tenant: number; project: number | null }, cast: Stage["cast"]) {
  const tenantId = cast.tenants[tenant] ?? "";
  if (project === null) return { tenantId, project: {}, says: tenantId };
  const projectId = cast.project(project);
  return { tenantId, project: { projectId }, says: `${tenantId}/${projectId}` };
}

function endOf({ tenantId, holderKind, holderId }: Holder, newId: () => string): CloudEvent {
  const attempt = holderKind === "Attempt";
  return {
    ...{ id: newId(), correlationid: newId(), tenantid: tenantId },
    ...{ specversion: "1.0", source: "/control-plane", datacontenttype: "application/json" },
    type: attempt ? "run-control.attempts.v1.attempt-outcome-recorded" : "tooling.sandboxes.v1.sandbox-released",
    data: attempt
      ? { runId: newId(), stepId: newId(), attemptId: holderId, outcome: "ATTEMPT_OUTCOME_SUCCEEDED" }
      : { sandboxId: holderId, tenantId },
  };
}
