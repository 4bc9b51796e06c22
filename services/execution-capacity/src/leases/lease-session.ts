import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { callCause } from "@runtime-cloud/eventing/cause";
import { refuser } from "@runtime-cloud/service-kit/error-codes";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Context } from "../context.ts";
import type { LeaseDesk } from "../desk/lease-desk.ts";
import type { LeaseReads } from "./lease-reads.ts";
import { SessionFlow } from "./session-flow.ts";
import { SessionOperations } from "./session-operations.ts";

/**
 * LeaseSession: reads operations as they come, without waiting for results, and answers each as soon as it is committed.
 *
 * - A holder's acquires are done one after the other, and so are the renewals and the release of a lease; their results
 *   come in that order. All else is done as it comes, and answered as it is ready.
 * - A wrong operation is answered with its error, and the session goes on. Bytes that are no message end it.
 * - An acquire that waits is answered WAITING, and a second time once the wait is over; its `ttl` then counts from when
 *   that second result comes.
 * - A caller that doesn't read its results isn't read either, beyond the operations that may be under way.
 * - Once the caller has closed its side, or the server drains, what was read is answered, and the session ends. Waits
 *   aren't waited for: their leases stay in the queue, for WatchLease or the next session, which acquires again.
 */
export function leaseSession(
  context: Context,
  desk: LeaseDesk,
  reads: LeaseReads,
): ServiceImpl<typeof ExecutionCapacityService>["leaseSession"] {
  return async function* (requests, call) {
    const flow = new SessionFlow(requests, call.signal);
    const operations = new SessionOperations({ ...caller(context, call), desk, reads, flow, news: context.news });
    flow.start((request) => operations.take(request));
    try {
      for (let results = flow.taken(); !flow.over; results = flow.taken()) {
        if (results.length === 0) await flow.more();
        for (const result of results) {
          yield result;
          flow.delivered();
        }
      }
      flow.throwFailure();
    } finally {
      operations.leave();
      flow.leave();
    }
  };
}

function caller({ newId, logger }: Context, call: HandlerContext) {
  return {
    asked: { tenantId: principalOf(call).tenantId, cause: callCause(call, newId) },
    refuse: refuser(logger, call),
  };
}
