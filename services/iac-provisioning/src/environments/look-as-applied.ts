import type { HandlerContext } from "@connectrpc/connect";
import { DEFAULT_DEADLINE_MS } from "@runtime-cloud/service-kit/call-limits";
import type { Specification } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { openDesiredState } from "../specifications/desired-state.ts";
import { engineJob, stateKeyOf } from "../execution/engine-job.ts";
import { refuse } from "../engines/engine-result.ts";
import { failureFor } from "../engines/engine-stopped.ts";
import type { DriftJob, Engine, EngineFailure, EngineRefusal, EngineSignals } from "../engines/engine.ts";

/** Of the call's time, what is kept to end the engines and to answer. */
const ANSWER_MS = 1_500;

/**
 * Has a specification's engine look at what is there, with a job that may read its state and no more. Half of an apply
 * under way would look like drift, so then nothing is looked at. What can be expected to go wrong is a refusal, never a throw.
 */
export async function lookAsApplied<Outcome>(
  context: Context,
  specification: Specification,
  signals: EngineSignals,
  look: (engine: Engine, job: DriftJob) => Promise<Outcome>,
): Promise<Outcome | EngineRefusal> {
  try {
    const { id } = specification;
    const applying = await applyingRun(context, specification);
    if (applying) return refuse(locked(`run ${applying.id} is applying: look again when it ended`));

    const desired = await openDesiredState(context, specification);
    const holderId = `inspection-${context.newId()}`;
    const key = stateKeyOf(specification);
    const password = await context.credentials.grant({ holderId, key, epoch: 0, access: "read" });
    if (password === undefined) return refuse({ code: "STATE_REFUSED", message: `specification ${id} can't be read` });
    try {
      const job = engineJob(context, { specification, desired, holderId, password, signals });
      return await look(context.engines[desired.program.engine], job);
    } finally {
      await context.credentials.revoke(holderId);
    }
  } catch (error) {
    return refuse(failureFor(error));
  }
}

async function applyingRun({ client }: Context, { environmentId, kind }: Specification) {
  return client.provisioningRun.findFirst({
    where: {
      environmentId,
      specification: { kind },
      state: { in: ["APPLYING", "CANCELLING"] },
      applyingAt: { not: null },
    },
    select: { id: true },
  });
}

function locked(message: string): EngineFailure {
  return { code: "STATE_LOCKED", message };
}

/** Gives the engines most of the call's time. Looking changes nothing, so one that takes longer is killed. */
export async function withinCall<T>(call: HandlerContext, work: (signals: EngineSignals) => Promise<T>): Promise<T> {
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
