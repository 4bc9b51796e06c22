import type { Cause } from "@runtime-cloud/eventing/cause";
import { type Inventory, Prisma } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit, Tx } from "../context.ts";

/** The work queue of observations: one job per environment, so that a slow one doesn't hold the others. */
export const OBSERVATIONS = "runtime-environment.observations";

/** From 0 to 1, always the same for an environment. */
const share = (id: Prisma.Sql) => Prisma.sql`((hashtext(${id}) & 1023) / 1023.0)::float8`;

/** An environment's interval, 10 % shorter to 10 % longer, so that environments don't come in step for long. */
const interval = Prisma.sql`(observe_seconds * (0.9 + 0.2 * ${share(Prisma.sql`id`)}))`;

/** The first time that comes of those that the interval makes: after an outage not all come at once, and then again. */
const nextByInterval = Prisma.sql`
  observe_at + make_interval(secs =>
    ${interval} * (1 + floor(greatest(0, extract(epoch FROM clock_timestamp() - observe_at)::float8) / ${interval})))`;

/** How many environments one claim takes. */
const CLAIMED_AT_ONCE = 200;

/**
 * Claims the environments whose look is due by moving it ahead, those of each tenant in turn. Several replicas claim
 * different ones; a claim whose job is lost comes again after the interval.
 */
export async function claimDueLooks({ client }: Pick<Context, "client">): Promise<DueLook[]> {
  const due = await client.$queryRaw<(DueLook & { tenantId: string })[]>`
    UPDATE inventory SET observe_at = ${nextByInterval}
    FROM (
      SELECT id AS due_id, observe_at AS due_at FROM inventory
      WHERE state <> 'RETIRED' AND observe_at <= statement_timestamp()
      ORDER BY observe_at LIMIT ${CLAIMED_AT_ONCE} FOR UPDATE SKIP LOCKED) AS due
    WHERE id = due_id
    RETURNING id, tenant_id AS "tenantId", due_at AS "dueAt", observe_at AS "observeAt"`;
  const turns = new Map<string, number>();
  const inTurns = due.map((look) => {
    const turn = turns.get(look.tenantId) ?? 0;
    turns.set(look.tenantId, turn + 1);
    return { look, turn };
  });
  return inTurns.sort((a, b) => a.turn - b.turn).map(({ look }) => look);
}

/** Enqueues the looks that are due; true when there may be more. */
export async function enqueueDueLooks(context: Context): Promise<{ ended: string[]; more: boolean }> {
  const due = await claimDueLooks(context);
  await Promise.all(
    due.map(async ({ id: environmentId, dueAt, observeAt }) => {
      await context.enqueue(OBSERVATIONS, environmentId, { environmentId, dueAt: dueAt.toISOString() });
      await context.arm("observation", observeAt);
    }),
  );
  return { ended: due.map(({ id }) => id), more: due.length === CLAIMED_AT_ONCE };
}

/** When a new interval brings its first look: those of many environments are spread over it. */
export async function firstLook(tx: Tx, id: string, observeSeconds: number): Promise<Date> {
  const [first] = await tx.$queryRaw<{ at: Date }[]>`
    SELECT clock_timestamp() + make_interval(secs =>
      ${observeSeconds}::int * (0.25 + 0.75 * ${share(Prisma.sql`${id}::text`)})) AS at`;
  if (!first) throw new Error("the database gave no time");
  return first.at;
}

/** A look that began after it was due was that look: the next one comes after the interval. */
export async function nextLook(unit: ServiceUnit, context: Context, id: string, looked: Date): Promise<void> {
  const [due] = await unit.tx.$queryRaw<Pick<DueLook, "observeAt">[]>`
    UPDATE inventory SET observe_at = ${nextByInterval}
    WHERE id = ${id} AND observe_at <= ${looked}
    RETURNING observe_at AS "observeAt"`;
  if (due) unit.after(() => context.arm("observation", due.observeAt));
}

/** Has an environment looked at as soon as possible once the unit is committed, for the unit's cause. */
export async function lookSoon(unit: ServiceUnit, context: Context, environmentId: string): Promise<void> {
  const { correlationId, causationId = null, traceparent = null } = unit.cause;
  await unit.tx.$executeRaw`
    UPDATE inventory
    SET observe_at = clock_timestamp(),
        look_correlation_id = ${correlationId}, look_causation_id = ${causationId}, look_traceparent = ${traceparent}
    WHERE id = ${environmentId}`;
  unit.after(() => context.enqueue(OBSERVATIONS, environmentId, { environmentId }));
}

/** Has an environment looked at now, beside its schedule: one of its observers has heard that something moves. */
export async function hurryLook({ enqueue }: Pick<Context, "enqueue">, environmentId: string): Promise<void> {
  await enqueue(OBSERVATIONS, environmentId, { environmentId });
}

/** What asked for the look that is due, and goes on in what it finds; undefined when nothing but the interval did. */
export function askedBy(inventory: Inventory): Cause | undefined {
  const { lookCorrelationId: correlationId, lookCausationId, lookTraceparent } = inventory;
  if (correlationId === null) return undefined;
  return {
    actor: "deadline:observation",
    correlationId,
    ...(lookCausationId !== null && { causationId: lookCausationId }),
    ...(lookTraceparent !== null && { traceparent: lookTraceparent }),
  };
}

/** The look that was asked for is had; one that somebody else has asked for meanwhile stays. */
export async function answerLook({ tx }: ServiceUnit, asked: Inventory): Promise<void> {
  const { id, lookCorrelationId, lookCausationId } = asked;
  await tx.inventory.updateMany({
    where: { id, lookCorrelationId, lookCausationId },
    data: { lookCorrelationId: null, lookCausationId: null, lookTraceparent: null },
  });
}

interface DueLook {
  id: string;
  /** When it was wanted. */
  dueAt: Date;
  /** When the next one is. */
  observeAt: Date;
}
