import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  CreateSuppressionRuleResponseSchema,
  EndSuppressionRuleResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/findings_pb";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import { callCause } from "@runtime-cloud/eventing/cause";
import { transactionNow } from "@runtime-cloud/eventing/database-clock";
import { once } from "@runtime-cloud/eventing/idempotency";
import { pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Context } from "../context.ts";
import { lockEnvironment, refuseRetired, unknownEnvironment } from "../inventory/inventory.ts";
import { endRule } from "./suppression-ending.ts";
import { addRule, lockRule } from "./suppression-rule.ts";
import { ruleMessage, suppressedBy } from "./suppression-rule-message.ts";

type Routes = Pick<
  ServiceImpl<typeof RuntimeEnvironmentService>,
  "createSuppressionRule" | "endSuppressionRule" | "listSuppressionRules"
>;

const { method } = RuntimeEnvironmentService;

export function suppressionRuleRoutes(context: Context): Routes {
  const { client, newId } = context;
  return {
    async createSuppressionRule(request, call) {
      const { tenantId, subject: createdBy } = principalOf(call);
      return unitOfWork(context, callCause(call, newId), (unit) =>
        once(unit, { tenantId, method: method.createSuppressionRule, request }, async () => {
          const inventory = await lockEnvironment(unit.tx, { id: request.environmentId, tenantId });
          refuseRetired(inventory, "suppress");
          const now = await transactionNow(unit.tx);
          const rule = await addRule(unit, inventory, { request, createdBy, now });
          unit.after(() => context.arm("suppression-rule-end", rule.until));
          const suppressed = (await suppressedBy(unit.tx, [rule.id])).get(rule.id) ?? 0;
          return create(CreateSuppressionRuleResponseSchema, { rule: ruleMessage(rule, suppressed) });
        }),
      );
    },

    async endSuppressionRule(request, call) {
      const { tenantId } = principalOf(call);
      return unitOfWork(context, callCause(call, newId), (unit) =>
        once(unit, { tenantId, method: method.endSuppressionRule, request }, async () => {
          const rule = await lockRule(unit.tx, { id: request.ruleId, tenantId });
          const now = await transactionNow(unit.tx);
          const ended = await endRule(unit, rule, now);
          if (!ended.endedAt) unit.after(() => context.arm("suppression-rule-end", now));
          const suppressed = (await suppressedBy(unit.tx, [rule.id])).get(rule.id) ?? 0;
          return create(EndSuppressionRuleResponseSchema, { rule: ruleMessage(ended, suppressed) });
        }),
      );
    },

    async listSuppressionRules({ environmentId, ended, ...request }, call) {
      const { tenantId } = principalOf(call);
      const inventory = await client.inventory.findFirst({
        where: { id: environmentId, tenantId },
        select: { id: true },
      });
      if (!inventory) throw unknownEnvironment(environmentId);
      const filter = { environmentId, ended };
      const after = pageAfter(request.pageToken, filter);
      const size = pageSize(request.pageSize);
      const found = await client.suppressionRule.findMany({
        where: { environmentId, ...(!ended && { endedAt: null }), ...(after !== undefined && { id: { lt: after } }) },
        orderBy: { id: "desc" },
        take: size + 1,
      });
      const page = found.slice(0, size);
      const suppressed = await suppressedBy(
        client,
        page.map(({ id }) => id),
      );
      return {
        rules: page.map((rule) => ruleMessage(rule, suppressed.get(rule.id) ?? 0)),
        nextPageToken: found.length > size ? pageToken(page.at(-1)?.id ?? "", filter) : "",
      };
    },
  };
}
