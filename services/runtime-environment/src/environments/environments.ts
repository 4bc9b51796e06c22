import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  ConfigureEnvironmentResponseSchema,
  ObserveEnvironmentResponseSchema,
  RetireEnvironmentResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import {
  Health as HealthCode,
  InventoryState as StateCode,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { callCause } from "@runtime-cloud/eventing/cause";
import { once } from "@runtime-cloud/eventing/idempotency";
import { NAME, pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { DEFAULT_DEADLINE_MS } from "@runtime-cloud/service-kit/call-limits";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { Health, InventoryState } from "../../generated/prisma/client.ts";
import { configurationOf, configure } from "./configure.ts";
import type { Context } from "../context.ts";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { DRIFTING, driftedEnvironments, environmentMessage, readEnvironment } from "./environment-message.ts";
import { lockEnvironment, refuseRetired, unknownEnvironment } from "../inventory/inventory.ts";
import { lookAround } from "../observing/look-around.ts";
import { retire } from "./retire.ts";
import { nextLook } from "../observing/schedule.ts";
import { takePush } from "../observing/take-push.ts";

type Routes = Pick<
  ServiceImpl<typeof RuntimeEnvironmentService>,
  "observeEnvironment" | "configureEnvironment" | "retireEnvironment" | "getEnvironment" | "listEnvironments"
>;

const { method } = RuntimeEnvironmentService;

export function environmentRoutes(context: Context): Routes {
  const { client, clock, newId } = context;
  return {
    async observeEnvironment(request, call) {
      const { tenantId } = principalOf(call);
      const cause = callCause(call, newId);
      const inventory = await client.inventory.findFirst({ where: { id: request.environmentId, tenantId } });
      if (!inventory) throw unknownEnvironment(request.environmentId);
      refuseRetired(inventory, "observe");
      if (request.observation) return takePush(context, { request, observation: request.observation, inventory, call });

      const around = { cause, signal: call.signal, timeoutMs: timeToLook(call), asked: true };
      const began = clock.now();
      const { changed } = await lookAround(context, inventory, around);
      return unitOfWork(context, cause, (unit) =>
        once(unit, { tenantId, method: method.observeEnvironment, request }, async () => {
          await nextLook(unit, context, inventory.id, began);
          const seen = await unit.tx.inventory.findUniqueOrThrow({ where: { id: inventory.id } });
          const environment = await readEnvironment(unit.tx, seen, unit.at);
          return create(ObserveEnvironmentResponseSchema, { environment, changed });
        }),
      );
    },

    async configureEnvironment(request, call) {
      const { tenantId } = principalOf(call);
      const configuration = await configurationOf(context, tenantId, request);
      return unitOfWork(context, callCause(call, newId), (unit) =>
        once(unit, { tenantId, method: method.configureEnvironment, request }, async () => {
          const inventory = await lockEnvironment(unit.tx, { id: request.environmentId, tenantId });
          refuseRetired(inventory, "configure");
          const configured = await configure(unit, context, inventory, configuration);
          const environment = await readEnvironment(unit.tx, configured, unit.at);
          return create(ConfigureEnvironmentResponseSchema, { environment });
        }),
      );
    },

    async retireEnvironment(request, call) {
      const { tenantId } = principalOf(call);
      return unitOfWork(context, callCause(call, newId), (unit) =>
        once(unit, { tenantId, method: method.retireEnvironment, request }, async () => {
          const inventory = await lockEnvironment(unit.tx, { id: request.environmentId, tenantId });
          const retired = await retire(unit, inventory);
          const environment = await readEnvironment(unit.tx, retired, unit.at);
          return create(RetireEnvironmentResponseSchema, { environment });
        }),
      );
    },

    async getEnvironment({ environmentId: id }, call) {
      const inventory = await client.inventory.findFirst({ where: { id, tenantId: principalOf(call).tenantId } });
      if (!inventory) throw unknownEnvironment(id);
      return { environment: await readEnvironment(client, inventory, clock.now()) };
    },

    async listEnvironments(request, call) {
      const { tenantId } = principalOf(call);
      const state = enumNamed(InventoryState, StateCode[request.state]);
      const health = enumNamed(Health, HealthCode[request.health]);
      const drifted = request.drifted || undefined;
      const filter = { projectId: request.projectId || undefined, state, health, drifted };
      const after = pageAfter(request.pageToken, filter, NAME);
      const size = pageSize(request.pageSize);
      const found = await client.inventory.findMany({
        where: {
          tenantId,
          ...(request.projectId !== "" && { projectId: request.projectId }),
          ...(state && { state }),
          ...(health && { health }),
          ...(drifted && { findings: { some: DRIFTING } }),
          ...(after !== undefined && { id: { gt: after } }),
        },
        orderBy: { id: "asc" },
        take: size + 1,
        include: { specifications: true, reports: true },
      });
      const page = found.slice(0, size);
      const withDrift = await driftedEnvironments(
        client,
        page.map(({ id }) => id),
      );
      return {
        environments: page.map(({ specifications, reports, ...inventory }) =>
          environmentMessage(inventory, { specifications, reports, drifted: withDrift.has(inventory.id) }),
        ),
        nextPageToken: found.length > size ? pageToken(page.at(-1)?.id ?? "", filter) : "",
      };
    },
  };
}

/** What of the call's time stays for writing down what was seen. */
const WRITING_MS = 1_000;

function timeToLook(call: HandlerContext): number {
  return Math.max(WRITING_MS, (call.timeoutMs() ?? DEFAULT_DEADLINE_MS) - WRITING_MS);
}
