import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type {
  AcquireOperation,
  LeaseOperation,
  LeaseOutcome,
  ReleaseOperation,
} from "@runtime-cloud/execution-capacity/desk/lease-operation";
import { type Answer, seenMessage, seenRow } from "./answers.ts";
import type { Call, Stage } from "./call.ts";
import { leaseOf, type Remembered } from "./memory.ts";
import type { AcquireStep, Operation } from "./operations.ts";

/* What holders do, through the desk: so those of a burst are decided together. */

export function acquireCall(step: AcquireStep, { cast, memory }: Stage): Call {
  const holder = cast.holder(step.tenant, step.holder, step.late);
  const { resource, units, priority } = step;
  const kind = "pool" in step.target ? cast.pool(step.target.pool).kind : step.target.selector.kind;
  const charged = { RUN_WORKERS: "RUNS", SANDBOX_HOSTS: "SANDBOXES", GENERAL: resource }[kind];
  const hadEnded = memory.hasEnded(holder);
  const operation: AcquireOperation = {
    kind: "acquire",
    ...holder,
    cause: cause(),
    projectId: cast.project(step.project),
    target: targetOf(step, cast),
    resource: kind === "GENERAL" ? resource : undefined,
    ...{ units, priority, ttlMs: step.ttlSeconds * 1_000, waitMs: step.waitSeconds * 1_000 },
  };
  return {
    says: `acquire ${JSON.stringify({ ...operation, cause: undefined })}`,
    run: (service) => throughDesk(service.desk, operation),
    refusals: ["InvalidInput", "NotFound", "IllegalTransition", "Exhausted"],
    judge(answer) {
      const lease = leaseOf(answer);
      const wrong: string[] = lease ? memory.contradictions(lease) : [];
      if (hadEnded && lease) wrong.push(`I6: ${holder.holderId} had ended, and was given ${lease.leaseId}`);
      const steady = memory.steady(holder, charged);
      if (lease && steady && steady.leaseId !== lease.leaseId)
        wrong.push(`I7: ${holder.holderId} holds ${steady.leaseId} and was given ${lease.leaseId}`);
      if (lease && !["ACTIVE", "WAITING"].includes(lease.state))
        wrong.push(`I7: an acquire answers the ${lease.state} lease ${lease.leaseId}`);
      return wrong;
    },
  };
}

/** The same request again: it has the lease that it had, while that lives. */
export function repeatCall(original: Call, was: string | undefined, holderIsSteady: () => boolean): Call {
  return {
    ...original,
    says: `again: ${original.says}`,
    judge(answer) {
      const lost = was !== undefined && holderIsSteady() && leaseOf(answer)?.leaseId !== was;
      const wrong = lost ? [`I7: the request that had ${was} came again, and had ${JSON.stringify(answer, text)}`] : [];
      return [...original.judge(answer), ...wrong];
    },
  };
}

export function renewCall({ token, ttlSeconds }: Operation & { kind: "renew" }, known: Remembered, stage: Stage): Call {
  const before = { ...known };
  const fencingToken = tokenOf(token, known);
  const { leaseId, tenantId } = known;
  const operation: LeaseOperation = {
    ...{ kind: "renew", tenantId, cause: cause(), leaseId, fencingToken, ttlMs: ttlSeconds * 1_000 },
  };
  return {
    says: `renew ${leaseId} of ${tenantId} with ${fencingToken} for ${ttlSeconds} s`,
    run: (service) => throughDesk(service.desk, operation),
    refusals: ["IllegalTransition"],
    judge(answer) {
      const lease = leaseOf(answer);
      const wrong = lease ? stage.memory.contradictions(lease) : [];
      const renewal = "renewal" in answer ? answer.renewal : undefined;
      if (renewal === "RENEWED" && before.gone)
        wrong.push(`I9: lease ${leaseId} was renewed after it had ended: ${before.end ?? "unseen"}`);
      if (renewal === "RENEWED" && lease?.fencingToken !== fencingToken)
        wrong.push(`I5: lease ${leaseId} was renewed with ${fencingToken}, and has ${lease?.fencingToken}`);
      if (before.steady && known.steady && before.active && token === "right" && renewal !== "RENEWED")
        wrong.push(`I7: lease ${leaseId} lives, and its renewal came to ${JSON.stringify(answer, text)}`);
      return wrong;
    },
  };
}

export function releaseCall({ token }: Operation & { kind: "release" }, known: Remembered, stage: Stage): Call {
  const before = { ...known };
  const { leaseId, tenantId } = known;
  const fencingToken = token === "none" ? undefined : tokenOf(token, known);
  const operation: ReleaseOperation = { kind: "release", tenantId, cause: cause(), leaseId, fencingToken };
  const rightful = token === "none" || token === "right";
  return {
    says: `release ${leaseId} of ${tenantId} with ${fencingToken ?? "no token"}`,
    run: (service) => throughDesk(service.desk, operation),
    refusals: rightful && (token === "none" || known.active) ? [] : ["IllegalTransition"],
    ends: { leaseIds: rightful ? [leaseId] : [] },
    judge(answer) {
      const lease = leaseOf(answer);
      const wrong = lease ? stage.memory.contradictions(lease) : [];
      if (lease && lease.end === null) wrong.push(`I7: lease ${leaseId} was released, and is ${lease.state}`);
      if (lease && before.steady && known.steady && !rightful)
        wrong.push(`I5: lease ${leaseId} was released with ${fencingToken}, which it doesn't have`);
      return wrong;
    },
  };
}

export function lookCall({ leaseId, tenantId }: Remembered, { memory }: Stage): Call {
  return {
    says: `look at ${leaseId} of ${tenantId}`,
    async run(service) {
      const { lease } = await service.as(tenantId).getLease({ leaseId });
      return lease ? { lease: seenMessage(lease) } : { refused: "none", text: "no lease in the answer" };
    },
    refusals: [],
    judge: (answer) => ("lease" in answer ? memory.contradictions(answer.lease) : [`${leaseId} isn't shown`]),
  };
}

async function throughDesk(
  desk: { submit(operation: LeaseOperation): Promise<LeaseOutcome> },
  operation: LeaseOperation,
): Promise<Answer> {
  const { lease, renewal } = await desk.submit(operation);
  return { lease: seenRow(lease), renewal };
}

function targetOf({ target }: AcquireStep, cast: Stage["cast"]): AcquireOperation["target"] {
  if ("pool" in target) return { poolId: cast.pool(target.pool).poolId };
  const { kind, zone, placement } = target.selector;
  return { selector: { kind, placement, labels: zone === null ? {} : { zone } } };
}

const UNKNOWN_TOKEN = 999_999_999n;

/** A waiter has none yet, so whatever it names is wrong. */
function tokenOf(token: "right" | "stale" | "unknown", { fencingToken }: Remembered): bigint {
  if (fencingToken === null || token === "unknown") return UNKNOWN_TOKEN;
  if (token === "right") return fencingToken;
  return fencingToken > 1n ? fencingToken - 1n : UNKNOWN_TOKEN;
}

function cause() {
  return { actor: "property", correlationId: uuidv7() };
}

const text = (_key: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
