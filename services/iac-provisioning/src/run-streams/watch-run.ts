import type { ServiceImpl } from "@connectrpc/connect";
import type { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { watcherLimit } from "@runtime-cloud/eventing/event-log/watcher-limit";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Context } from "../context.ts";
import { queuePositions } from "../runs/queue-position.ts";
import { isOver } from "../runs/run-end.ts";
import { runMessage, type RunWithProgram } from "../runs/run-message.ts";
import type { RunGlimpse, RunNews } from "./run-news.ts";
import { isSameProgress, type Progress, readProgress } from "./run-progress.ts";
import { findRun } from "../runs/runs.ts";

/**
 * WatchProvisioningRun: the run as it is, then each change of it, of its place in the queue and of its progress, as soon
 * as this process sees it; it ends with the run. Of changes in quick succession it tells the last. An executor that
 * renews its lease is no change. Throws NotFound for another tenant's run, Exhausted when the process has all the
 * watchers that it may have.
 */
export function watchRun(
  { client }: Context,
  news: RunNews,
): ServiceImpl<typeof IaCProvisioningService>["watchProvisioningRun"] {
  const watchers = watcherLimit();

  return async function* ({ provisioningRunId }, call) {
    const { tenantId } = principalOf(call);
    const leave = watchers.enter(call.signal);
    try {
      let shown = await snapshot(client, await findRun(client, tenantId, provisioningRunId));
      yield messageOf(shown);
      while (!isOver(shown.run.state)) {
        const wanted = { id: shown.run.id, progress: true, isNews: isNewsAfter(shown) };
        const glimpse = await news.next(wanted, call.signal);
        if (!glimpse) return;
        shown = await follow(client, shown, glimpse);
        yield messageOf(shown);
      }
    } finally {
      leave();
    }
  };
}

interface Shown {
  run: RunWithProgram;
  queuePosition: number | undefined;
  progress: Progress | undefined;
}

async function snapshot(client: Context["client"], run: RunWithProgram): Promise<Shown> {
  const positions = await queuePositions(client, [run]);
  const progress = await readProgress(client, run.applyingAt ? [run.id] : []);
  return { run, queuePosition: positions.get(run.id), progress: progress.get(run.id) };
}

/** The run is read once more only when it has changed; it may have changed again since the look. */
async function follow(client: Context["client"], { run }: Shown, glimpse: RunGlimpse): Promise<Shown> {
  const { version, queuePosition, progress } = glimpse;
  if (version === run.version) return { run, queuePosition, progress };
  return snapshot(client, await findRun(client, run.tenantId, run.id));
}

function isNewsAfter({ run, queuePosition, progress }: Shown): (glimpse: RunGlimpse) => boolean {
  return (glimpse) =>
    glimpse.version > run.version ||
    (glimpse.version === run.version &&
      (glimpse.queuePosition !== queuePosition || !isSameProgress(glimpse.progress, progress)));
}

function messageOf({ run, queuePosition, progress }: Shown) {
  return { run: runMessage(run, { queuePosition }), ...(progress && { progress }) };
}
