import type { ServiceImpl } from "@connectrpc/connect";
import type { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import type { LeaseOperation, LeaseResult } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { callCause } from "@runtime-cloud/eventing/cause";
import { refuser } from "@runtime-cloud/service-kit/error-codes";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Context } from "../context.ts";
import type { LeaseDesk } from "../desk/lease-desk.ts";
import { leaseMessages } from "./lease-message.ts";
import type { LeaseOperation as Operation, LeaseOutcome } from "../desk/lease-operation.ts";
import { type Asked, orderKey, leaseOperation } from "./lease-request.ts";
import { failedResult, leaseResult } from "./lease-result.ts";

/**
 * BatchLeases: all operations go to the desk together, those of one holder or lease one after the other, and each has a
 * result of its own. Those that wait are answered so; their later grant is for WatchLease or GetLease to tell.
 */
export function batchLeases(
  { client, newId, logger }: Context,
  desk: LeaseDesk,
): ServiceImpl<typeof ExecutionCapacityService>["batchLeases"] {
  return async ({ operations }, call) => {
    const asked = { tenantId: principalOf(call).tenantId, cause: callCause(call, newId) };
    const refuse = refuser(logger, call);
    const last = new Map<string, Promise<Settled>>();
    const submitted = operations.map((message, index) => {
      const key = orderKey(message) ?? `#${index}`;
      const before = last.get(key);
      const own = before ? before.then(() => submit(desk, message, asked, index)) : submit(desk, message, asked, index);
      last.set(key, own);
      return own;
    });
    const settled = await Promise.all(submitted);
    const leases = settled.flatMap((one) => ("outcome" in one ? [one.outcome.lease] : []));
    const messages = await leaseMessages(client, leases);
    let next = 0;
    const results = settled.map((one): LeaseResult => {
      if ("error" in one) return failedResult(refuse(one.error));
      const message = messages[next++];
      if (!message) throw new Error("a lease has no message");
      return leaseResult(one.kind, one.outcome, message);
    });
    return { results };
  };
}

/** Never rejects. */
async function submit(desk: LeaseDesk, message: LeaseOperation, asked: Asked, index: number): Promise<Settled> {
  try {
    const operation = leaseOperation(message, asked, `operations[${index}]`);
    return { kind: operation.kind, outcome: await desk.submit(operation) };
  } catch (error) {
    return { error };
  }
}

type Settled = { kind: Operation["kind"]; outcome: LeaseOutcome } | { error: unknown };
