import type { Cause } from "@runtime-cloud/eventing/cause";
import { type Inventory, Prisma } from "../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "./context.ts";

/** The work queue of observations: one job per environment, so that a slow one doesn't hold the others. */
export const OBSERVATIONS = "runtime-environment.observations";

/** An environment's interval, 10 % shorter to 10 % longer by its id, so that environments don't come in step. */
const nextByInterval = Prisma.sql`
  clock_timestamp() + make_interval(secs => observe_seconds * (0.9 + 0.2 * (hashtext(id) & 1023) / 1023.0)::float8)`;

/** How many environments one claim takes. */
const CLAIMED_AT_ONCE = 100;

/**
 * Claims the environments whose look is due by moving it ahead. Several replicas claim different ones; a claim whose
 * job is lost comes again after the interval.
 */
export async function claimDueLooks({ client }: Pick<Context, "client">): Promise<DueLook[]> {
  return client.$queryRaw<DueLook[]>`
    UPDATE inventory SET observe_at = ${nextByInterval}
    WHERE id IN (
      SELECT id FROM inventory
      WHERE state IN ('UNOBSERVED', 'FRESH', 'STALE') AND observe_at <= clock_timestamp()
      ORDER BY observe_at LIMIT ${CLAIMED_AT_ONCE} FOR UPDATE SKIP LOCKED)
    RETURNING id, observe_at AS "observeAt"`;
}

/** A look that began after it was due was that look: the next one comes after the interval. */
export async function nextLook(unit: ServiceUnit, context: Context, id: string, looked: Date): Promise<void> {
  const [due] = await unit.tx.$queryRaw<DueLook[]>`
    UPDATE inventory SET observe_at = ${nextByInterval}
    WHERE id = ${id} AND observe_at <= ${looked}
    RETURNING id, observe_at AS "observeAt"`;
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
  observeAt: Date;
}
