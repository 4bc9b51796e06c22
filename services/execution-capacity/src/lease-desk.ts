import { setTimeout as wait } from "node:timers/promises";
import { gather } from "@runtime-cloud/eventing/gather";
import { classifyDatabaseError } from "@runtime-cloud/service-kit/database-errors";
import { Exhausted } from "@runtime-cloud/service-kit/errors";
import { transact } from "@runtime-cloud/service-kit/transact";
import { candidatePools } from "./candidate-pools.ts";
import type { Context } from "./context.ts";
import { type BatchItem, decideBatch } from "./lease-batch.ts";
import type { ExpireOperation, LeaseOperation, LeaseOutcome } from "./lease-operation.ts";
import { sqlTransactions } from "./sql-transactions.ts";
import { tell } from "./tell.ts";

/** Where every operation on leases is decided, whichever way it came in. */
export interface LeaseDesk {
  /**
   * Decides an operation together with those that come at the same time, and settles once it is committed. Rejects with
   * the errors of `service-kit/errors`: InvalidInput, NotFound, IllegalTransition (an ended holder, a lease of another
   * token), Exhausted (no capacity and no wait, or too many operations at once); and with the database's.
   */
  submit(operation: LeaseOperation): Promise<LeaseOutcome>;
  /** Decides these together and apart from what callers wait for, so that they wait no longer than for one such batch. */
  expire(operations: readonly ExpireOperation[]): Promise<PromiseSettledResult<LeaseOutcome>[]>;
}

/** Batches at once: while one is committed the next is decided. */
const LANES = 2;
const LARGEST = 256;
/** What a batch costs whatever it holds is as much as some dozens of operations: smaller ones would be no quicker. */
const SMALLEST = 64;
/** Longer batches are halved, so that nobody waits long behind others. */
const TARGET_MS = 25;
const MOST_WAITING = 10_000;
const RETRY_MS = 250;
/** How often a batch is decided again whose connection was lost. Every operation may be repeated: its result is the same. */
const TRIES = 3;
const PAUSE_MS = 100;

export function openLeaseDesk(context: Context): LeaseDesk {
  const { client, pool, newId, clock, logger, announced } = context;
  const transactions = sqlTransactions(pool);
  const submit = gather<BatchItem, LeaseOutcome>({
    work: decideApart,
    lanes: LANES,
    largest: LARGEST,
    smallest: SMALLEST,
    targetMs: TARGET_MS,
    mostWaiting: { limit: MOST_WAITING, refusal: tooMany },
  });

  /** All in one transaction; where something unforeseen fails it, in halves, so that it fails alone. */
  async function decideApart(items: readonly BatchItem[]): Promise<PromiseSettledResult<LeaseOutcome>[]> {
    try {
      return await decideTogether(items);
    } catch (reason) {
      if (items.length === 1) return [{ status: "rejected", reason }];
      if (classifyDatabaseError(reason) !== "other") return items.map(() => ({ status: "rejected", reason }));
      logger.error({ err: reason, items: items.length }, "a batch of lease operations failed; it is decided in halves");
      const half = Math.ceil(items.length / 2);
      return [...(await decideApart(items.slice(0, half))), ...(await decideApart(items.slice(half)))];
    }
  }

  async function decideTogether(
    items: readonly BatchItem[],
    attempt = 1,
  ): Promise<PromiseSettledResult<LeaseOutcome>[]> {
    try {
      const { results, capacity } = await transact(transactions, (query) =>
        decideBatch({ query, newId, at: clock.now() }, items),
      );
      if (capacity.announces) announced();
      if (capacity.told.size > 0) {
        tell(context, capacity).catch((err: unknown) => logger.warn({ err }, "a lease's wake-up was lost"));
      }
      return results;
    } catch (error) {
      const kind = classifyDatabaseError(error);
      if (attempt >= TRIES || (kind !== "outcome-unknown" && kind !== "unreachable")) throw error;
      await wait(PAUSE_MS * attempt);
      return decideTogether(items, attempt + 1);
    }
  }

  return {
    async submit(operation) {
      if (operation.kind !== "acquire" || "poolId" in operation.target) return submit({ operation });
      const candidates = await candidatePools(client, operation.tenantId, operation.target);
      return submit({ operation, candidates });
    },
    expire: (operations) => decideApart(operations.map((operation) => ({ operation }))),
  };
}

function tooMany(): Exhausted {
  const description = `${MOST_WAITING} lease operations wait already: ask again in a moment`;
  return new Exhausted({ subject: "service:lease-operations", description, retryAfterMs: RETRY_MS });
}
