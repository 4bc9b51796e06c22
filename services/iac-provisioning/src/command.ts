import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { callCause } from "@runtime-cloud/eventing/cause";
import { once } from "@runtime-cloud/eventing/idempotency";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { type Principal, principalOf } from "@runtime-cloud/service-kit/principal";
import type { Context, ServiceUnit } from "./context.ts";

/** How every command comes in: one unit of work for the caller, done once for its idempotency key. */
export function command<I extends DescMessage, O extends DescMessage>(
  context: Context,
  method: DescMethodUnary<I, O>,
  work: (unit: ServiceUnit, request: MessageShape<I>, principal: Principal) => Promise<MessageInitShape<O>>,
) {
  return (request: MessageShape<I> & { idempotencyKey: string }, call: HandlerContext): Promise<MessageShape<O>> => {
    const principal = principalOf(call);
    return unitOfWork(context, callCause(call, context.newId), (unit) =>
      once(unit, { tenantId: principal.tenantId, method, request }, async () =>
        create(method.output, await work(unit, request, principal)),
      ),
    );
  };
}
