import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  SuppressDriftResponseSchema,
  UnsuppressDriftResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/findings_pb";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import {
  DriftKind as KindCode,
  FindingSeverity as SeverityCode,
  FindingState as StateCode,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { callCause } from "@runtime-cloud/eventing/cause";
import { once } from "@runtime-cloud/eventing/idempotency";
import { pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { IllegalTransition, InvalidInput, NotFound } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { driftFinding } from "@runtime-cloud/state-machines/drift-finding";
import { DriftKind, type Finding, FindingSeverity, FindingState } from "../../generated/prisma/client.ts";
import type { Context, Tx } from "../context.ts";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { findingMessage } from "./finding-message.ts";
import type { Versions } from "./finding-origin.ts";
import { advanceFinding } from "./finding-transitions.ts";
import { lockEnvironment, unknownEnvironment } from "../inventory/inventory.ts";
import { atLeast } from "./severity.ts";
import { reasonViolations } from "../suppression/suppression-reason.ts";
import { suppressionEnd } from "../suppression/suppression-until.ts";

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
          const until = suppressionEnd(request.until, await transactionNow(unit.tx));
          const { reason } = request;
          const violations = reasonViolations(reason);
          if (violations.length > 0) throw new InvalidInput(violations);
          const finding = await advanceFinding(unit, open, { type: "suppress", reason, until, ruleId: null });
          unit.after(() => context.arm("suppression-end", until, { findingId: finding.id }));
          const versions = await versionsOf(unit.tx, finding.environmentId);
          return create(SuppressDriftResponseSchema, { finding: findingMessage(finding, versions) });
        }),
      );
    },

    async unsuppressDrift(request, call) {
      const { tenantId } = principalOf(call);
      return unitOfWork(context, callCause(call, newId), (unit) =>
        once(unit, { tenantId, method: method.unsuppressDrift, request }, async () => {
          const suppressed = await lockFinding(unit.tx, { id: request.findingId, tenantId });
          refuseByRule(suppressed);
          const finding = await advanceFinding(unit, suppressed, { type: "unsuppress" });
          const versions = await versionsOf(unit.tx, finding.environmentId);
          return create(UnsuppressDriftResponseSchema, { finding: findingMessage(finding, versions) });
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
      const kind = enumNamed(DriftKind, KindCode[request.kind]);
      const severity = enumNamed(FindingSeverity, SeverityCode[request.severity]);
      const filter = { environmentId, state, kind, severity };
      const after = pageAfter(request.pageToken, filter);
      const size = pageSize(request.pageSize);
      const found = await client.finding.findMany({
        where: {
          tenantId,
          environmentId,
          ...(state && { state }),
          ...(kind && { kind }),
          ...(severity && { severity: { in: atLeast(severity) } }),
          ...(after !== undefined && { id: { lt: after } }),
        },
        orderBy: { id: "desc" },
        take: size + 1,
      });
      const page = found.slice(0, size);
      const versions = await versionsOf(client, environmentId);
      return {
        findings: page.map((finding) => findingMessage(finding, versions)),
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

/** A rule would silence it again with the next look. */
function refuseByRule({ id, state, suppressionRuleId }: Finding): void {
  if (state !== "SUPPRESSED" || suppressionRuleId === null) return;
  const reason = `suppression rule ${suppressionRuleId} silences it: end that by EndSuppressionRule`;
  throw new IllegalTransition({ aggregate: driftFinding.id, id, state, event: "unsuppress", reason, allowed: [] });
}

/** The versions of a finding's environment, which tell its origin. */
async function versionsOf(tx: Tx, inventoryId: string): Promise<Versions[]> {
  return tx.trackedSpecification.findMany({
    where: { inventoryId },
    select: { kind: true, declaredVersion: true, appliedVersion: true },
  });
}
