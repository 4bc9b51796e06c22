import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { AppliedSpecificationSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import type { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Specification } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { follow } from "../execution/engine-job.ts";
import { refuse } from "../engines/engine-result.ts";
import type { EngineFailure, EngineSignals } from "../engines/engine.ts";
import { unknownEnvironment } from "./lock-environment.ts";
import { lookAsApplied, withinCall } from "./look-as-applied.ts";
import { observedMessage } from "./observed-message.ts";

export function inspectionRoutes(context: Context) {
  return {
    async inspectEnvironment({ environmentId }, call) {
      const { tenantId } = principalOf(call);
      const environment = await context.client.environment.findFirst({ where: { id: environmentId, tenantId } });
      if (!environment) throw unknownEnvironment(environmentId);

      const applied = await context.client.specification.findMany({
        where: { tenantId, environmentId, state: "APPLIED" },
        orderBy: { kind: "asc" },
      });
      const specifications = await withinCall(call, (signals) =>
        Promise.all(applied.map((specification) => inspect(context, specification, signals))),
      );
      return { specifications };
    },
  } satisfies Partial<ServiceImpl<typeof IaCProvisioningService>>;
}

async function inspect(
  context: Context,
  specification: Specification,
  signals: EngineSignals,
): Promise<MessageInitShape<typeof AppliedSpecificationSchema>> {
  const outcome = await lookAsApplied(context, specification, signals, (engine, job) =>
    follow(engine.drift(job), () => Promise.resolve()),
  ).catch((error: unknown) => refuse(unexpected(context, error)));
  const { id, kind, specificationVersion, releaseId } = specification;
  return {
    specificationId: id,
    kind: SpecificationKind[kind],
    version: specificationVersion,
    releaseId: releaseId ?? undefined,
    ...(outcome.result === "observed" ? observedMessage(outcome) : { failure: textOf(outcome.failure) }),
  };
}

/** Told to the log, and of one specification only: others are still worth knowing. */
function unexpected({ logger }: Context, err: unknown): EngineFailure {
  logger.error({ err }, "inspection failed");
  return { code: "ENGINE_ERROR", message: "the inspection failed: the service's log has the reason" };
}

function textOf({ code, address, message }: EngineFailure): string {
  if (code === "KILLED") return "TIMED_OUT: the engine didn't answer within the call's time";
  return `${code}: ${address === undefined ? "" : `${address}: `}${message}`;
}
