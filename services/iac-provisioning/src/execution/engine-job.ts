import path from "node:path";
import type { Specification } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import type { DesiredState } from "../specifications/desired-state.ts";
import type { EngineEvent } from "../engines/engine-event.ts";
import type { EngineJob, EngineSignals } from "../engines/engine.ts";
import type { StateKey } from "../state/state-key.ts";

export interface EngineJobParts {
  specification: Specification;
  desired: DesiredState;
  /** Who reaches the state: the run, or the observation. */
  holderId: string;
  password: string;
  secrets?: readonly string[];
  signals: EngineSignals;
}

/** A job for an engine, but for what its verb wants. */
export function engineJob(context: Context, parts: EngineJobParts): EngineJob {
  const { specification, desired, holderId, password, secrets = [], signals } = parts;
  return {
    program: desired.program,
    parameters: desired.parameters,
    state: { address: context.stateAddress, username: holderId, password },
    targetDirectory: targetDirectory(context, specification),
    workRoot: path.resolve(context.settings.WORK_DIR),
    secrets: [...desired.secrets, ...secrets],
    signals,
  };
}

export function stateKeyOf({ tenantId, environmentId, kind }: Specification): StateKey {
  return { tenantId, environmentId, kind };
}

/** Hands every event on, one after the other, and returns how the engine ended. */
export async function follow<Outcome>(
  engine: AsyncGenerator<EngineEvent, Outcome>,
  take: (event: EngineEvent) => Promise<void>,
): Promise<Outcome> {
  try {
    for (;;) {
      const step = await engine.next();
      if (step.done) return step.value;
      await take(step.value);
    }
  } catch (error) {
    // An engine that is left behind is interrupted, and waited for.
    await engine.throw(error).catch(() => undefined);
    throw error;
  }
}

function targetDirectory({ settings }: Context, { tenantId, environmentId, kind }: Specification): string {
  return path.resolve(settings.TARGETS_DIR, segment(tenantId), segment(environmentId), kind.toLowerCase());
}

/** Any id as the name of one directory. */
function segment(id: string): string {
  return /^\.+$/.test(id) ? id.replaceAll(".", "%2E") : encodeURIComponent(id);
}
