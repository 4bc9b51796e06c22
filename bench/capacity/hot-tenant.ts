import type { Finding, Findings, Results } from "../report.ts";
import { figureOf, type Measured, ratio, takeTurns } from "../rounds.ts";
import { afterCheckpoints } from "./after-checkpoint.ts";
import { openBestNaivePath } from "./best-naive.ts";
import type { CapacityServers } from "./capacity-servers.ts";
import { startDurableRedis } from "./durable-redis.ts";
import { openEtcdPath } from "./etcd-path.ts";
import { hotDatabase } from "./hot-database.ts";
import { type LeasePath, withLeasePaths } from "./lease-path.ts";
import { pairs } from "./pairs.ts";
import { openPlainRedisPath } from "./redis-plain-path.ts";
import { openRedisPath } from "./redis-path.ts";
import { openServicePath } from "./service-path.ts";
import { openNoopSessionPath, openSessionPath } from "./session-path.ts";
import { openSqlCeiling, type SqlCeiling } from "./sql-ceiling.ts";

export interface HotTenantSizes {
  readonly rounds: number;
  readonly seconds: number;
  /** Of each contestant before the first round, and of each number of connections that is tried. */
  readonly warmUpSeconds: number;
}

export const HOT_TENANT_SIZES: Readonly<Record<"full" | "quick", HotTenantSizes>> = {
  full: { rounds: 3, seconds: 3, warmUpSeconds: 1 },
  quick: { rounds: 1, seconds: 1, warmUpSeconds: 0.25 },
};

export const CALLERS = 32;
const FIGURE = "pairs_per_second";
/** These are played by one caller alone too. */
const ALONE: readonly string[] = ["runtime_cloud", "naive"];

/** One tenant, one project, one pool: callers that acquire and release a slot, beside what else would do it. */
export async function measureHotTenant(
  servers: CapacityServers,
  sizes: HotTenantSizes,
): Promise<Findings & Pick<Results, "conditions">> {
  const redis = await startDurableRedis();
  try {
    const ceiling = await openSqlCeiling(await servers.emptyDatabase("sql_ceiling"));
    try {
      const { etcd } = servers;
      const openers = [
        async () => openServicePath(await hotDatabase(servers, "hot_tenant")),
        async () => openSessionPath(await hotDatabase(servers, "hot_tenant_session")),
        openNoopSessionPath,
        () => openBestNaivePath(servers, CALLERS, sizes.warmUpSeconds),
        () => openRedisPath(redis, CALLERS),
        () => openPlainRedisPath(redis, CALLERS),
        ...(etcd ? [() => openEtcdPath(etcd)] : []),
      ];
      return await withLeasePaths<LeasePath, Findings & Pick<Results, "conditions">>(openers, async (paths) => {
        const measured = await measure(await servers.emptyDatabase("checkpoints"), paths, ceiling, sizes);
        return { ...findings(measured), conditions: conditions(paths, ceiling, sizes) };
      });
    } finally {
      await ceiling.close();
    }
  } finally {
    await redis.stop();
  }
}

function measure(
  databaseUrl: string,
  paths: readonly LeasePath[],
  ceiling: SqlCeiling,
  { rounds, seconds, warmUpSeconds }: HotTenantSizes,
): Promise<Measured> {
  const contestants = (each: number) => [
    ceiling.contestant(each),
    ...paths.map((path) => pairs(path, { callers: CALLERS, seconds: each })),
    ...paths
      .filter(({ name }) => ALONE.includes(name))
      .map((path) => pairs(path, { name: `${path.name}_alone`, callers: 1, seconds: each })),
  ];
  return afterCheckpoints(databaseUrl, async (afterCheckpoint) => {
    await takeTurns(contestants(warmUpSeconds), 1);
    return takeTurns(contestants(seconds).map(afterCheckpoint), rounds);
  });
}

function findings(measured: Measured): Findings {
  const own = (meaning: string, figure: string, contestant = "runtime_cloud"): Finding => ({
    meaning,
    spread: figureOf(measured, figure, contestant),
  });
  const beside = (meaning: string, divisor: string, dividend = "runtime_cloud"): Finding => ({
    meaning: `acquire-release pairs per second, ${meaning}; more is better`,
    spread: ratio(measured, FIGURE, dividend, divisor),
  });
  return {
    measured,
    headlines: {
      s1_pairs_per_second: own(
        `acquire-release pairs per second of one tenant, ${CALLERS} callers; more is better`,
        FIGURE,
      ),
      s1_acquire_p50_ms: own(`median of an acquire, ${CALLERS} callers; less is better`, "acquire_p50_ms"),
      s1_acquire_p99_ms: own(
        `what 99 % of the acquires don't exceed, ${CALLERS} callers; less is better`,
        "acquire_p99_ms",
      ),
      s1_process_cpu_ms_per_pair: own(
        "CPU of our process a pair, without PostgreSQL's; less is better",
        "process_cpu_ms_per_pair",
      ),
    },
    ratios: {
      s1_vs_ceiling: beside("the desk in its process ÷ a batch statement written by hand", "sql_ceiling"),
      s1_vs_naive: beside("the desk in its process ÷ a FOR UPDATE transaction a request", "naive"),
      ...("etcd" in measured && {
        s1_vs_etcd: beside("the desk in its process ÷ etcd's grant, create-if-absent and revoke", "etcd"),
      }),
      s1_vs_redis: beside("the desk in its process ÷ a Lua semaphore of the same limits, flushed always", "redis"),
      s1_vs_redis_plain: beside("the desk in its process ÷ a sorted set and one limit, flushed always", "redis_plain"),
      s1_session_vs_noop: beside(
        "one LeaseSession ÷ the same stream to a handler that does nothing",
        "noop_session",
        "runtime_cloud_session",
      ),
      s1_alone_vs_naive: beside(
        "one caller alone at the desk ÷ one caller alone with a FOR UPDATE transaction",
        "naive_alone",
        "runtime_cloud_alone",
      ),
    },
  };
}

function conditions(
  paths: readonly LeasePath[],
  { about }: SqlCeiling,
  { rounds, seconds }: HotTenantSizes,
): Results["conditions"] {
  return {
    ...Object.fromEntries(paths.map((path) => [path.name, path.about])),
    sql_ceiling: about,
    ...(!paths.some(({ name }) => name === "etcd") && {
      etcd: "skipped: it isn't on the PATH, nor to be had as Debian's etcd-server",
    }),
    hot_tenant: `rounds ${rounds} of ${seconds} s, each after a checkpoint; callers ${CALLERS} and 1; nobody waits, and nothing publishes the outbox meanwhile`,
  };
}
