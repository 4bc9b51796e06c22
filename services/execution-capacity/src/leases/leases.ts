import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { RevokeLeaseResponseSchema } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { callCause } from "@runtime-cloud/eventing/cause";
import { once } from "@runtime-cloud/eventing/idempotency";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { batchLeases } from "./batch-leases.ts";
import type { CallUnits } from "./call-unit.ts";
import { endLease, ownLease } from "../capacity/capacity-lease.ts";
import { leaseKey } from "../capacity/capacity.ts";
import type { Context } from "../context.ts";
import type { LeaseDesk } from "../desk/lease-desk.ts";
import { leaseMessage } from "./lease-message.ts";
import { leaseReads } from "./lease-reads.ts";
import { acquireOperation, type Asked, releaseOperation, renewOperation } from "./lease-request.ts";
import { acquired, released, renewed } from "./lease-result.ts";
import { leaseSession } from "./lease-session.ts";
import { lockCapacity, settleUnit } from "../capacity/unit-capacity.ts";
import { watchLease } from "./watch-lease.ts";

type LeaseMethods =
  "acquireLease" | "renewLease" | "releaseLease" | "batchLeases" | "leaseSession" | "watchLease" | "revokeLease";

/** What holders do, by whichever way in, and what they and operators see of it. */
export function leaseRoutes(
  context: Context,
  desk: LeaseDesk,
  { changing }: CallUnits,
): Pick<ServiceImpl<typeof ExecutionCapacityService>, LeaseMethods> {
  const reads = leaseReads(context);
  const asked = (call: HandlerContext): Asked => ({
    tenantId: principalOf(call).tenantId,
    cause: callCause(call, context.newId),
  });

  return {
    async acquireLease(request, call) {
      const outcome = await desk.submit(acquireOperation(request, asked(call)));
      return acquired(outcome, await reads.message(outcome.lease));
    },

    async renewLease(request, call) {
      const outcome = await desk.submit(renewOperation(request, asked(call)));
      return renewed(outcome, await reads.message(outcome.lease));
    },

    async releaseLease(request, call) {
      const { lease } = await desk.submit(releaseOperation(request, asked(call)));
      return released(await reads.message(lease));
    },

    batchLeases: batchLeases(context, desk),
    leaseSession: leaseSession(context, desk, reads),
    watchLease: watchLease(context, reads),

    revokeLease: (request, call) =>
      changing(call, (unit, tenantId) =>
        once(unit, { tenantId, method: ExecutionCapacityService.method.revokeLease, request }, async () => {
          const known = await ownLease(unit.tx, tenantId, request.leaseId);
          const capacity = await lockCapacity(unit, { leases: [known] });
          const { now, leases } = capacity;
          const lease = leases.get(leaseKey(known)) ?? known;
          const ended = endLease(capacity, lease, { type: "revoke", at: now, reason: "OPERATOR" }, unit.cause);
          await settleUnit(context, unit, capacity);
          return create(RevokeLeaseResponseSchema, { lease: await leaseMessage(unit.tx, ended) });
        }),
      ),
  };
}
