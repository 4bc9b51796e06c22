import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  SuppressDriftResponseSchema,
  UnsuppressDriftResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/findings_pb";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import { FindingState as StateCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { callCause } from "@runtime-cloud/eventing/cause";
import { once } from "@runtime-cloud/eventing/idempotency";
import { pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { InvalidInput, NotFound } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { type Finding, FindingState } from "../generated/prisma/client.ts";
import type { Context, Tx } from "./context.ts";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { findingMessage } from "./finding-message.ts";
import { advanceFinding } from "./finding-transitions.ts";
import { lockEnvironment, unknownEnvironment } from "./inventory.ts";

type Routes = Pick<ServiceImpl<typeof RuntimeEnvironmentService>, "suppressDrift" | "unsuppressDrift" | "listFindings">;

const { method } = RuntimeEnvironmentService;

export function findingRoutes(context: Context): Routes {
  const { client, newId } = context;
  return {
    async suppressDrift(request, call) {
      const { tenantId } = principalOf(call);
      return unitOfWork(context, callCause(call, newId), (unit) =>
        once(unit, { tenantId, method: method.suppressDrift, request }, async () => {
          const open = await lockFinding(unit.tx, { id: request.findingId, tenantId });
          const until = futureInstant(request.until, await transactionNow(unit.tx));
          const finding = await advanceFinding(unit, open, { type: "suppress", reason: request.reason, until });
          unit.after(() => context.arm("suppression-end", until, { findingId: finding.id }));
          return create(SuppressDriftResponseSchema, { finding: findingMessage(finding) });
        }),
      );
    },

    async unsuppressDrift(request, call) {
      const { tenantId } = principalOf(call);
      return unitOfWork(context, callCause(call, newId), (unit) =>
        once(unit, { tenantId, method: method.unsuppressDrift, request }, async () => {
          const suppressed = await lockFinding(unit.tx, { id: request.findingId, tenantId });
          const finding = await advanceFinding(unit, suppressed, { type: "unsuppress" });
          return create(UnsuppressDriftResponseSchema, { finding: findingMessage(finding) });
        }),
      );
    },

    async listFindings(request, call) {
      const { tenantId } = principalOf(call);
      const { environmentId } = request;
      const inventory = await client.inventory.findFirst({
        where: { id: environmentId, tenantId },
        select: { id: true },
      });
      if (!inventory) throw unknownEnvironment(environmentId);
      const state = enumNamed(FindingState, StateCode[request.state]);
      const filter = { environmentId, state };
      const after = pageAfter(request.pageToken, filter);
      const size = pageSize(request.pageSize);
      const found = await client.finding.findMany({
        where: { tenantId, environmentId, ...(state && { state }), ...(after !== undefined && { id: { lt: after } }) },
        orderBy: { id: "desc" },
        take: size + 1,
      });
      const page = found.slice(0, size);
      return {
        findings: page.map(findingMessage),
        nextPageToken: found.length > size ? pageToken(page.at(-1)?.id ?? "", filter) : "",
      };
    },
  };
}

async function lockFinding(tx: Tx, { id, tenantId }: { id: string; tenantId: string }): Promise<Finding> {
  const found = await tx.finding.findFirst({ where: { id, tenantId }, select: { environmentId: true } });
  if (!found) throw new NotFound(`finding ${id} does not exist`);
  await lockEnvironment(tx, { id: found.environmentId, tenantId });
  return tx.finding.findUniqueOrThrow({ where: { id } });
}

function futureInstant(until: Timestamp | undefined, now: Date): Date {
  const instant = until ? timestampDate(until) : now;
  if (instant > now) return instant;
  throw new InvalidInput([{ field: "until", description: `is not in the future: it is ${now.toISOString()} now` }]);
}
