import { until } from "@runtime-cloud/local-servers/until";
import { Logger, run, type RunnerOptions, WorkerPreset } from "graphile-worker";
import project from "../../package.json" with { type: "json" };
import { committed, portions } from "./committed.ts";
import type { Path } from "./path.ts";
import { openPeer } from "./peer.ts";

const TASK = "note";
const JOBS_PER_ADD = 1_000;
const DONE_WITHIN_MS = 10_000;
const VERSION = project.devDependencies["graphile-worker"];

interface Settings extends Pick<Path, "name" | "about"> {
  readonly concurrency: number;
  readonly options: RunnerOptions;
}

const DEFAULTS: Settings = {
  name: "graphile_worker",
  about: `${VERSION}, its defaults: one job at a time, woken by NOTIFY, a poll each 2 s`,
  concurrency: 1,
  options: {},
};

const TUNED_CONCURRENCY = 24;
const TUNED: Settings = {
  name: "graphile_worker_tuned",
  about: `${VERSION}: concurrentJobs ${TUNED_CONCURRENCY}, localQueue of 500, completions in batches`,
  concurrency: TUNED_CONCURRENCY,
  options: {
    preset: {
      extends: [WorkerPreset],
      worker: {
        concurrentJobs: TUNED_CONCURRENCY,
        maxPoolSize: TUNED_CONCURRENCY + 2,
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
      },
    },
  },
};

export function openGraphilePath(databaseUrl: string): Promise<Path> {
  return open(databaseUrl, DEFAULTS);
}

/** As its own guide to performance advises. */
export function openTunedGraphilePath(databaseUrl: string): Promise<Path> {
  return open(databaseUrl, TUNED);
}

/** Jobs come by `add_jobs` in one transaction, as its own `addJobs` calls it. It counts from the sending of COMMIT. */
async function open(databaseUrl: string, { name, about, concurrency, options }: Settings): Promise<Path> {
  const peer = await openPeer(databaseUrl, concurrency + 2);
  const runner = await run({
    ...options,
    connectionString: databaseUrl,
    taskList: { [TASK]: (envelope: unknown) => peer.handle([envelope]) },
    parsedCronItems: [],
    noHandleSignals: true,
    // It writes a line for each job, which takes time.
    logger: new Logger(() => () => undefined),
  });
  runner.events.on("job:error", ({ error }) => peer.ledger.wrong(String(error)));
  runner.events.on("pool:fatalError", ({ error }) => peer.ledger.wrong(String(error)));

  return {
    name,
    about,
    ledger: peer.ledger,
    send(events) {
      return committed(peer.pool, async (client) => {
        for (const some of portions(events, JOBS_PER_ADD)) {
          await client.query(
            `SELECT count(*) FROM graphile_worker.add_jobs(
               ARRAY(SELECT json_populate_recordset(NULL::graphile_worker.job_spec, $1::json)), false)`,
            [JSON.stringify(some.map((payload) => ({ identifier: TASK, payload })))],
          );
        }
      });
    },
    async check(eventIds) {
      await peer.check(eventIds);
      await until("a queue without jobs", DONE_WITHIN_MS, async () => {
        const { rows } = await peer.pool.query("SELECT FROM graphile_worker.jobs LIMIT 1");
        return rows.length === 0 || undefined;
      });
    },
    async close() {
      await runner.stop();
      await peer.close();
    },
  };
}
