import { until } from "@runtime-cloud/local-servers/until";
import { type ConstructorOptions, PgBoss, type Queue, type WorkOptions } from "pg-boss";
import project from "../../package.json" with { type: "json" };
import { committed, portions } from "./committed.ts";
import type { Path } from "./path.ts";
import { openPeer } from "./peer.ts";

const QUEUE = "notes";
const JOBS_PER_INSERT = 1_000;
const CONNECTIONS = 10;
const DONE_WITHIN_MS = 10_000;
const VERSION = project.devDependencies["pg-boss"];

interface Settings extends Pick<Path, "name" | "about"> {
  readonly instance: ConstructorOptions;
  readonly queue: Omit<Queue, "name">;
  readonly work: WorkOptions;
}

const DEFAULTS: Settings = {
  name: "pg_boss",
  about: `${VERSION}, its defaults: one job each 2 s, whatever the machine, so its throughput says only that`,
  instance: {},
  queue: {},
  work: {},
};

const TUNED: Settings = {
  name: "pg_boss_tuned",
  about: `${VERSION}: batches of 500, the next at once after a full one, woken by NOTIFY, a poll each 0.5 s`,
  instance: { useListenNotify: true },
  queue: { notify: true },
  work: { batchSize: 500, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 },
};

export function openPgBossPath(databaseUrl: string): Promise<Path> {
  return open(databaseUrl, DEFAULTS);
}

export function openTunedPgBossPath(databaseUrl: string): Promise<Path> {
  return open(databaseUrl, TUNED);
}

/** Jobs come by its own `insert`, in one transaction. It counts from the sending of COMMIT. */
async function open(databaseUrl: string, { name, about, instance, queue, work }: Settings): Promise<Path> {
  const peer = await openPeer(databaseUrl, CONNECTIONS);
  const boss = new PgBoss({ ...instance, connectionString: databaseUrl });
  boss.on("error", (error) => peer.ledger.wrong(error.message));
  await boss.start();
  await boss.createQueue(QUEUE, queue);
  await boss.work(QUEUE, work, (jobs) => peer.handle(jobs.map(({ data }) => data)));
  let jobsSoFar = 0;

  return {
    name,
    about,
    ledger: peer.ledger,
    send(events) {
      return committed(peer.pool, async (client) => {
        const db = { executeSql: (sql: string, values?: unknown[]) => client.query(sql, values) };
        for (const some of portions(events, JOBS_PER_INSERT)) {
          await boss.insert(
            QUEUE,
            some.map((data) => ({ data })),
            { db },
          );
        }
      });
    },
    async check(eventIds) {
      await peer.check(eventIds);
      jobsSoFar += eventIds.length;
      await until("completed jobs and no other", DONE_WITHIN_MS, async () => {
        const { rows } = await peer.pool.query<{ state: string; jobs: number }>(
          "SELECT state::text, count(*)::int AS jobs FROM pgboss.job WHERE name = $1 GROUP BY state",
          [QUEUE],
        );
        const [only] = rows;
        return (rows.length === 1 && only?.state === "completed" && only.jobs === jobsSoFar) || undefined;
      });
    },
    async close() {
      await boss.stop();
      await peer.close();
    },
  };
}
