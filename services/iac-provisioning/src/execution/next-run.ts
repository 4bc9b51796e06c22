import { unitsOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { StaleRow } from "@runtime-cloud/service-kit/errors";
import { Prisma } from "../../generated/prisma/client.ts";
import { advanceRun } from "../runs/advance-run.ts";
import type { Context, ServiceUnit, Tx } from "../context.ts";
import { EXECUTOR_LOST } from "../deadline-kinds.ts";
import { type HeldRun, runCause, startLease } from "./held-run.ts";
import { lockEnvironment } from "../environments/lock-environment.ts";
import { IS_READY, isReady } from "../runs/run-queue.ts";
import { type Run, unsealed } from "../runs/run-row.ts";

/** A run that an executor has got to work on. */
export interface Turn {
  run: Run;
  cause: HeldRun["cause"];
  /** Set when it is to be planned. One that is approved is taken by `startApply`, which has to look around first. */
  held: HeldRun | undefined;
}

/** How many transitions back it is remembered whose turn it was. */
const HISTORY = 1_000;
/** Each loss is another executor's gain, so this many in a row mean that something else is wrong. */
const MAX_LOSSES = 20;

/**
 * Takes the run whose turn it is. Tenants take turns: whoever has the fewest runs under way, then whoever had no turn
 * for the longest; of one tenant what is approved goes first, then what waits for the longest. Two executors never get
 * the same run to plan. Undefined when nothing waits for an executor.
 */
export async function takeNext(context: Context): Promise<Turn | undefined> {
  for (let losses = 0; losses < MAX_LOSSES; losses += 1) {
    // Where everybody passes over what others hold, the last run could be left to nobody: so then they wait.
    const taken = (await take(context, passOver)) ?? (await take(context, waitFor));
    if (taken !== "lost") return taken;
  }
  throw new StaleRow(`${MAX_LOSSES} runs in a row went to other executors`);
}

/** Takes one run, whosever turn it is; undefined when it doesn't wait for an executor. */
export async function takeRun(context: Context, runId: string): Promise<Turn | undefined> {
  const taken = await take(context, (tx) => lockOne(tx, runId));
  return taken === "lost" ? undefined : taken;
}

async function take(
  context: Context,
  choose: (tx: Tx) => Promise<string | undefined>,
): Promise<Turn | "lost" | undefined> {
  return unitsOfWork(context, async (tx, unitOf) => {
    const runId = await choose(tx);
    if (runId === undefined) return undefined;
    // The choice was made before the environment's lock was held.
    if (!(await isReady(tx, runId))) return "lost";

    const run = await tx.provisioningRun.findUniqueOrThrow({ where: { id: runId }, omit: unsealed });
    const cause = await runCause({ client: tx, newId: context.newId }, run, `executor:${context.executorId}`);
    const held = run.state === "QUEUED" ? await startPlanning(context, unitOf(cause), run) : undefined;
    return { run, cause, held };
  });
}

async function startPlanning(context: Context, unit: ServiceUnit, queued: Run): Promise<HeldRun> {
  const run = await advanceRun(context, unit, queued, { type: "start", executorId: context.executorId });
  const until = await startLease(context, unit.tx, run);
  unit.after(() => context.arm(EXECUTOR_LOST, until, { runId: run.id }));
  const specification = await unit.tx.specification.findUniqueOrThrow({ where: { id: run.specificationId } });
  return { run, specification, cause: unit.cause };
}

async function lockOne(tx: Tx, runId: string): Promise<string | undefined> {
  const run = await tx.provisioningRun.findUnique({ where: { id: runId }, omit: unsealed });
  if (!run) return undefined;
  await lockEnvironment(tx, run.tenantId, run.environmentId);
  return runId;
}

const passOver = (tx: Tx) => nextReady(tx, Prisma.sql`SKIP LOCKED`);
const waitFor = (tx: Tx) => nextReady(tx, Prisma.empty);

/** The next run, its environment locked. */
async function nextReady(tx: Tx, others: Prisma.Sql): Promise<string | undefined> {
  const [next] = await tx.$queryRaw<{ id: string }[]>`
    WITH held AS (
      SELECT tenant_id, count(*) AS runs FROM provisioning_run
      WHERE state IN ('PLANNING', 'APPLYING', 'CANCELLING')
      GROUP BY tenant_id
    ), served AS (
      SELECT tenant_id, max(id) AS last
      FROM (SELECT id, tenant_id, aggregate, event FROM transition ORDER BY id DESC LIMIT ${HISTORY}) recent
      WHERE aggregate = 'ProvisioningRun' AND event IN ('start', 'startApply')
      GROUP BY tenant_id
    )
    SELECT run.id
    FROM provisioning_run run
    JOIN environment ON environment.id = run.environment_id
    LEFT JOIN held ON held.tenant_id = run.tenant_id
    LEFT JOIN served ON served.tenant_id = run.tenant_id
    WHERE ${IS_READY}
    ORDER BY coalesce(held.runs, 0), served.last NULLS FIRST, run.state = 'QUEUED', run.queued_at, run.id
    LIMIT 1
    FOR UPDATE OF environment ${others}`;
  return next?.id;
}
