import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import {
  ExplainCapacityResponse_Outcome as Outcome,
  type ExplainCapacityResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/usage_pb";
import { callCause } from "@runtime-cloud/eventing/cause";
import { IllegalTransition, InvalidInput, NotFound } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { transact } from "@runtime-cloud/service-kit/transact";
import type { CapacityLease } from "../../generated/prisma/client.ts";
import { acquire, requestOf } from "../desk/acquire.ts";
import { candidatePools } from "../desk/candidate-pools.ts";
import { leaseKey } from "../capacity/capacity.ts";
import { glimpse } from "../capacity/capacity-glimpse.ts";
import type { Context, Tx } from "../context.ts";
import type { AcquireOperation } from "../desk/lease-operation.ts";
import { acquireOperation } from "./lease-request.ts";
import { poolVerdicts, type Verdict } from "../desk/pool-verdict.ts";
import { scopeUsages, WHOLE_TENANT } from "../quotas/scope-usage.ts";

type Response = MessageInitShape<typeof ExplainCapacityResponseSchema>;

export function explainRoutes({
  client,
  newId,
}: Context): Pick<ServiceImpl<typeof ExecutionCapacityService>, "explainCapacity"> {
  return {
    async explainCapacity({ acquire: request }, call) {
      if (!request) throw new InvalidInput([{ field: "acquire", description: "is missing" }]);
      const { tenantId } = principalOf(call);
      const operation = acquireOperation(request, { tenantId, cause: callCause(call, newId) }, "acquire.");
      return transact(
        client,
        async (tx) => {
          const [tenant, project] = await scopeUsages(tx, tenantId, [WHOLE_TENANT, operation.projectId]);
          const explained = await explain({ tx, newId }, operation);
          return { ...explained, ...(tenant && { tenant }), ...(project && { project }) };
        },
        { isolationLevel: "RepeatableRead" },
      );
    },
  };
}

/** Decides as an acquire does, on rows that aren't locked, and writes nothing. */
async function explain(
  { tx, newId }: Pick<Context, "newId"> & { tx: Tx },
  operation: AcquireOperation,
): Promise<Response> {
  const pools = await candidatePools(tx, operation.tenantId, operation.target);
  const capacity = await glimpse(tx, newId, operation, pools);
  const before = new Set(capacity.leases.keys());
  let verdicts: Verdict[] = [];
  try {
    if (pools.length > 0) {
      verdicts = await poolVerdicts(tx, capacity, operation, requestOf(capacity, operation, pools), pools);
    }
    const lease = acquire(capacity, operation, pools);
    return { ...answer(operation, lease, before, verdicts), pools: messagesOf(verdicts) };
  } catch (error) {
    return { outcome: Outcome.REFUSED, explanation: refusal(error), pools: messagesOf(verdicts) };
  }
}

function answer(
  operation: AcquireOperation,
  lease: CapacityLease | undefined,
  before: ReadonlySet<string>,
  verdicts: readonly Verdict[],
): Response {
  const passing = lease ? undefined : verdicts.find(({ message }) => message.reason === undefined);
  if (passing) return { outcome: Outcome.GRANTED, explanation: passing.message.explanation, poolId: passing.pool.id };
  if (!lease) return { outcome: Outcome.WAITS, explanation: waits(operation, verdicts) };
  const { poolId, poolTenantId } = lease;
  if (before.has(leaseKey(lease))) return { outcome: Outcome.HELD, explanation: held(lease), poolId };
  const granting = verdicts.find(({ pool }) => pool.id === poolId && pool.tenantId === poolTenantId);
  return { outcome: Outcome.GRANTED, explanation: granting?.message.explanation ?? "", poolId };
}

function messagesOf(verdicts: readonly Verdict[]) {
  return verdicts.map(({ message }) => message);
}

function held({ id, state, holderKind, holderId, units, poolId }: CapacityLease): string {
  const does = state === "ACTIVE" ? "holds" : "waits for";
  return `${holderKind} ${holderId} ${does} ${slots(units)} of pool ${poolId} by lease ${id}, which is answered again`;
}

function waits({ waitMs }: AcquireOperation, verdicts: readonly Verdict[]): string {
  const best = verdicts[0]?.message.explanation ?? "";
  const which = verdicts.length > 1 ? `none of ${verdicts.length} pools grants it now; the best: ${best}` : best;
  return waitMs > 0 ? which : `${which}; the request names no wait, so it is refused`;
}

function slots(units: number): string {
  return units === 1 ? "1 slot" : `${units} slots`;
}

/** Rethrows what isn't a refusal of the request. */
function refusal(error: unknown): string {
  const refused = error instanceof InvalidInput || error instanceof NotFound || error instanceof IllegalTransition;
  if (!refused) throw error;
  return error.message;
}
