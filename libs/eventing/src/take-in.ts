import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { classifyDatabaseError } from "@runtime-cloud/service-kit/database-errors";
import { type Cause, eventCause } from "./cause.ts";
import type { SqlTransaction } from "./sql-transaction.ts";
import { type Unit, type UnitContext, unitsOfWork } from "./unit-of-work.ts";

/** An event on its way to one handler. */
export interface Delivery<Tx> {
  event: CloudEvent;
  /** The handler's name. */
  handler: string;
  work: (unit: Unit<Tx>) => Promise<void>;
}

/**
 * Several deliveries hold several rows, in no order that others keep to: so together they give way before anybody
 * waits long for them, and go on one by one.
 */
const TOGETHER = { lockWait: "50ms", tries: 1 };
/** A second delivery at the same moment waits for the first one's end. */
const ALONE = { lockWait: "0" };

/** Answers whether the delivery was new: false when its handler had the event before. */
export async function takeIn<Tx extends SqlTransaction>(
  context: UnitContext<Tx>,
  delivery: Delivery<Tx>,
): Promise<boolean> {
  const [fresh = false] = await inOneTransaction(context, [delivery], ALONE);
  return fresh;
}

/**
 * Takes deliveries in, in one transaction if that works out; else each by `alone`, so that one that fails takes no
 * other with it.
 */
export async function takeInTogether<Tx extends SqlTransaction>(
  context: UnitContext<Tx>,
  deliveries: readonly Delivery<Tx>[],
  alone: (delivery: Delivery<Tx>) => Promise<boolean>,
): Promise<PromiseSettledResult<boolean>[]> {
  if (deliveries.length > 1) {
    try {
      const fresh = await inOneTransaction(context, deliveries, TOGETHER);
      return fresh.map((value) => ({ status: "fulfilled", value }));
    } catch (error) {
      if (classifyDatabaseError(error) === "unreachable") throw error;
    }
  }
  return Promise.allSettled(deliveries.map(alone));
}

async function inOneTransaction<Tx extends SqlTransaction>(
  context: UnitContext<Tx>,
  deliveries: readonly Delivery<Tx>[],
  { lockWait, ...options }: { lockWait: string; tries?: number },
): Promise<boolean[]> {
  const work = async (tx: Tx, unit: (cause: Cause) => Unit<Tx>) => {
    const unheard = await writeReceipts(tx, deliveries, lockWait);
    const fresh: boolean[] = [];
    for (const { event, handler, work: take } of deliveries) {
      const isNew = unheard.delete(receiptKey(event.id, handler));
      if (isNew) await take(unit(eventCause(event, handler)));
      fresh.push(isNew);
    }
    return fresh;
  };
  return unitsOfWork(context, work, options);
}

/**
 * Written in the order of their keys, so that two of these never wait for each other. Answers the keys of the new ones.
 * One value goes there and one comes back: the driver's price is by the value.
 */
async function writeReceipts<Tx extends SqlTransaction>(
  tx: Tx,
  deliveries: readonly Delivery<Tx>[],
  lockWait: string,
): Promise<Set<string>> {
  const receipts = deliveries.map(({ event, handler }) => ({ event_id: event.id, handler }));
  const [row] = await tx.$queryRaw<{ fresh: string[] }[]>`
    WITH fresh AS (
      INSERT INTO inbox_receipt (event_id, handler)
      SELECT receipt.event_id, receipt.handler
      FROM (SELECT set_config('lock_timeout', ${lockWait}, true)) AS bound,
           jsonb_to_recordset(${JSON.stringify(receipts)}::jsonb) AS receipt (event_id uuid, handler text)
      ORDER BY 1, 2
      ON CONFLICT DO NOTHING
      RETURNING event_id, handler
    )
    SELECT coalesce(json_agg(event_id || ' ' || handler), '[]') AS fresh FROM fresh`;
  return new Set(row?.fresh);
}

function receiptKey(eventId: string, handler: string): string {
  return `${eventId.toLowerCase()} ${handler}`;
}
