import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AppliedSpecificationSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import type { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { DEFAULT_DEADLINE_MS } from "@runtime-cloud/service-kit/call-limits";
import { NotFound } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Specification } from "../generated/prisma/client.ts";
import type { Context } from "./context.ts";
import { openDesiredState } from "./desired-state.ts";
import { engineJob, follow, stateKeyOf } from "./engine-job.ts";
import type { DriftOutcome, EngineFailure, EngineSignals } from "./engines/engine.ts";
import { failureFor } from "./engines/engine-stopped.ts";
import { observedMessage } from "./observed-message.ts";

/** Of the call's time, what is kept to end the engines and to answer. */
const ANSWER_MS = 1_500;

export function inspectionRoutes(context: Context) {
  return {
    async inspectEnvironment({ environmentId }, call) {
      const { tenantId } = principalOf(call);
      const environment = await context.client.environment.findFirst({ where: { id: environmentId, tenantId } });
      if (!environment)
        throw new NotFound(`environment ${environmentId} isn't known here; it arrives with EnvironmentCreated`);

      const applied = await context.client.specification.findMany({
        where: { tenantId, environmentId, state: "APPLIED" },
        orderBy: { kind: "asc" },
      });
      const specifications = await within(call, (signals) =>
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
  const outcome = await observe(context, specification, signals);
  const { id, kind, specificationVersion, releaseId } = specification;
  return {
    specificationId: id,
    kind: SpecificationKind[kind],
    version: specificationVersion,
    releaseId: releaseId ?? undefined,
    ...(outcome.result === "observed" ? observedMessage(outcome) : { failure: textOf(outcome.failure) }),
  };
}

/** What the engine sees; half of an apply under way would look like drift, so then nothing is looked at. */
async function observe(context: Context, specification: Specification, signals: EngineSignals): Promise<DriftOutcome> {
  try {
    const { id, environmentId, kind } = specification;
    const applying = await context.client.provisioningRun.findFirst({
      where: {
        environmentId,
        specification: { kind },
        state: { in: ["APPLYING", "CANCELLING"] },
        applyingAt: { not: null },
      },
      select: { id: true },
    });
    if (applying)
      return failed({ code: "STATE_LOCKED", message: `run ${applying.id} is applying: look again when it ended` });

    const desired = await openDesiredState(context, specification);
    const holderId = `inspection-${context.newId()}`;
    const key = stateKeyOf(specification);
    const password = await context.credentials.grant({ holderId, key, epoch: 0, access: "read" });
    if (password === undefined) return failed({ code: "STATE_REFUSED", message: `specification ${id} can't be read` });
    try {
      const job = engineJob(context, { specification, desired, holderId, password, signals });
      return await follow(context.engines[desired.program.engine].drift(job), () => Promise.resolve());
    } finally {
      await context.credentials.revoke(holderId);
    }
  } catch (error) {
    return failed(expected(context, error));
  }
}

/** Whatever goes wrong with one specification is said of that one: the others are still worth knowing. */
function expected({ logger }: Context, error: unknown): EngineFailure {
  try {
    return failureFor(error);
  } catch {
    logger.error({ err: error }, "inspection failed");
    return { code: "ENGINE_ERROR", message: "the inspection failed: the service's log has the reason" };
  }
}

/** Gives the engines most of the call's time. Looking changes nothing, so one that takes longer is killed. */
async function within<T>(call: HandlerContext, work: (signals: EngineSignals) => Promise<T>): Promise<T> {
  const kill = new AbortController();
  const end = () => kill.abort();
  const timer = setTimeout(end, Math.max(0, (call.timeoutMs() ?? DEFAULT_DEADLINE_MS) - ANSWER_MS));
  call.signal.addEventListener("abort", end, { once: true });
  try {
    return await work({ interrupt: new AbortController().signal, kill: kill.signal });
  } finally {
    clearTimeout(timer);
    call.signal.removeEventListener("abort", end);
  }
}

function failed(failure: EngineFailure): DriftOutcome {
  return { result: "failed", failure };
}

function textOf({ code, address, message }: EngineFailure): string {
  if (code === "KILLED") return "TIMED_OUT: the engine didn't answer within the call's time";
  return `${code}: ${address === undefined ? "" : `${address}: `}${message}`;
}
