import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type ObserveEnvironmentRequest,
  ObserveEnvironmentResponseSchema,
  type PushedObservation,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/environments_pb";
import { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import { callCause } from "@runtime-cloud/eventing/cause";
import { once } from "@runtime-cloud/eventing/idempotency";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Inventory } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { readEnvironment } from "../environments/environment-message.ts";
import { lockEnvironment, refuseRetired } from "../inventory/inventory.ts";
import { lookAt } from "./look.ts";
import { recordSight } from "./record-sight.ts";
import { ENGINE } from "../observers/observer.ts";
import { observerSettings } from "../observers/observer-settings.ts";
import { pushedObserver } from "../observers/push/pushed-observer.ts";
import { takeInUnchanged } from "./unchanged-sight.ts";
import { readWorld } from "../inventory/world-rows.ts";

const method = RuntimeEnvironmentService.method.observeEnvironment;

/** What an agent saw is here already: taking it in waits for nobody. */
const TIMEOUT_MS = 1_000;

/** Takes in what an agent saw by itself. Throws Denied for a stranger, and InvalidInput for what can't be so. */
export async function takePush(context: Context, { request, observation, inventory, call }: Push) {
  const { client, clock, measures, newId } = context;
  const { tenantId, subject } = principalOf(call);
  const cause = callCause(call, newId);
  const known = await readWorld(client, inventory.id);
  const { push: settings } = observerSettings(inventory.observers);
  const appliedNames = known.components.filter(({ observer }) => observer === ENGINE).map(({ name }) => name);
  const observer = pushedObserver(observation, { now: clock.now(), subject, settings, appliedNames });
  const sight = await lookAt(context, observer, inventory, { cause, signal: call.signal, timeoutMs: TIMEOUT_MS });
  // A key's first result is kept with what it changed, in a transaction.
  if (request.idempotencyKey === "" && (await takeInUnchanged(context, inventory, known, sight))) {
    measures.taken(observer.name, "unchanged");
    const seen = await client.inventory.findUniqueOrThrow({ where: { id: inventory.id } });
    const environment = await readEnvironment(client, seen, clock.now());
    return create(ObserveEnvironmentResponseSchema, { environment, changed: false });
  }
  return unitOfWork(context, cause, (unit) =>
    once(unit, { tenantId, method, request }, async () => {
      const locked = await lockEnvironment(unit.tx, inventory);
      refuseRetired(locked, "observe");
      const seen = await recordSight(unit, context, locked, { sight, before: known });
      unit.after(async () => measures.taken(observer.name, seen.outcome));
      const environment = await readEnvironment(unit.tx, seen.inventory, unit.at);
      return create(ObserveEnvironmentResponseSchema, { environment, changed: seen.outcome === "changed" });
    }),
  );
}

interface Push {
  request: ObserveEnvironmentRequest;
  observation: PushedObservation;
  inventory: Inventory;
  call: HandlerContext;
}
