import type { Cause } from "./cause.ts";
import type { SqlTransaction } from "./sql-transaction.ts";

/** A transition of the past that what happens now goes on with. */
export interface Continued {
  tenantId: string;
  /** The machine's id, for example `ProvisioningRun`. */
  aggregate: string;
  id: string;
  /** The newest one by this event. */
  event: string;
}

/**
 * The cause of what is done later about something asked for earlier, by an executor or a deadline: the correlation, the
 * causation and the trace of the transition that asked go on, under the actor that does it. Undefined when the history
 * doesn't have the transition.
 */
export async function continuedCause(
  db: Pick<SqlTransaction, "$queryRaw">,
  { tenantId, aggregate, id, event }: Continued,
  actor: string,
): Promise<Cause | undefined> {
  const [asked] = await db.$queryRaw<Asked[]>`
    SELECT correlation_id AS "correlationId", causation_id AS "causationId", traceparent
    FROM transition
    WHERE tenant_id = ${tenantId} AND aggregate = ${aggregate} AND aggregate_id = ${id} AND event = ${event}
    ORDER BY version DESC LIMIT 1`;
  if (!asked) return undefined;
  const { correlationId, causationId, traceparent } = asked;
  return {
    actor,
    correlationId,
    ...(causationId !== null && { causationId }),
    ...(traceparent !== null && { traceparent }),
  };
}

interface Asked {
  correlationId: string;
  causationId: string | null;
  traceparent: string | null;
}
