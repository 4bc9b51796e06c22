import { setTimeout as wait } from "node:timers/promises";
import { gather } from "@runtime-cloud/eventing/gather";
import { classifyDatabaseError } from "@runtime-cloud/service-kit/database-errors";
import { Exhausted } from "@runtime-cloud/service-kit/errors";
import { transact } from "@runtime-cloud/service-kit/transact";
import { candidatePools } from "./candidate-pools.ts";
import type { Capacity } from "../capacity/capacity.ts";
import type { Context } from "../context.ts";
import { type BatchItem, type DecidedBatch, decideBatch } from "./lease-batch.ts";
import type { ExpireOperation, LeaseOperation, LeaseOutcome } from "./lease-operation.ts";
import { rememberedCapacity } from "./remembered-capacity.ts";
import { sqlTransactions } from "./sql-transactions.ts";
import { tell } from "./tell.ts";
import { countRevisions, keepTold } from "../capacity/write-capacity.ts";
import { statementOf } from "../capacity/write-statement.ts";

/** Where every operation on leases is decided, whichever way it came in. */
export interface LeaseDesk {
  /**
   * Decides an operation together with those that come at the same time, and settles once it is committed. Rejects with
   * the errors of `service-kit/errors`: InvalidInput, NotFound, IllegalTransition (an ended holder, a lease of another
   * token), Exhausted (no capacity and no wait, or too many operations at once); and with the database's.
   */
  submit(operation: LeaseOperation): Promise<LeaseOutcome>;
  /**
   * Decides these together, one such batch at a time and apart from what callers wait for, so that they wait no longer
   * than for one of them.
   */
  expire(operations: readonly ExpireOperation[]): Promise<PromiseSettledResult<LeaseOutcome>[]>;
  /** Whether a caller asked for something within the last second. */
  isAsked(): boolean;
}

/** Told of every batch that was committed. */
export type BatchTold = (batch: { way: "remembered" | "locked"; size: number; elapsedMs: number }) => void;

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
const ASKED_WITHIN_MS = 1_000;

export function openLeaseDesk(context: Context, told: BatchTold = nothing): LeaseDesk {
  const { client, pool, newId, clock, logger, announced } = context;
  const transactions = sqlTransactions(pool);
  const remembered = rememberedCapacity(newId);
  let lastGuess: Promise<undefined> = Promise.resolve(undefined);
  let lastLocked: Promise<undefined> = Promise.resolve(undefined);
  let lastExpiry: Promise<undefined> = Promise.resolve(undefined);
  let lastAsked = -Infinity;
  const submit = gather<BatchItem, LeaseOutcome>({
    work: decideApart,
    lanes: LANES,
    largest: LARGEST,
    smallest: SMALLEST,
    targetMs: TARGET_MS,
    mostWaiting: { limit: MOST_WAITING, refusal: tooMany },
  });

  /** All in one transaction; where something unforeseen fails it, in halves, so that it fails alone. */
  async function decideApart(
    items: readonly BatchItem[],
    log: (err: unknown) => void = warnOfHalves,
  ): Promise<PromiseSettledResult<LeaseOutcome>[]> {
    try {
      return await decideTogether(items);
    } catch (reason) {
      if (items.length === 1) return [{ status: "rejected", reason }];
      if (classifyDatabaseError(reason) !== "other") return items.map(() => ({ status: "rejected", reason }));
      log(reason);
      const half = Math.ceil(items.length / 2);
      return [
        ...(await decideApart(items.slice(0, half), nothing)),
        ...(await decideApart(items.slice(half), nothing)),
      ];
    }
  }

  function warnOfHalves(err: unknown): void {
    logger.error({ err }, "a batch of lease operations failed; it is decided in halves");
  }

  async function decideTogether(
    items: readonly BatchItem[],
    attempt = 1,
  ): Promise<PromiseSettledResult<LeaseOutcome>[]> {
    const began = performance.now();
    const tellBatch = (way: "remembered" | "locked") =>
      told({ way, size: items.length, elapsedMs: performance.now() - began });
    const guessed = attempt === 1 ? await writeGuess(items) : undefined;
    if (guessed) {
      tellBatch("remembered");
      return guessed;
    }
    try {
      const { results, capacity } = await decideLocked(items);
      tellBatch("locked");
      tellAll(capacity);
      return results;
    } catch (error) {
      const kind = classifyDatabaseError(error);
      if (attempt >= TRIES || (kind !== "outcome-unknown" && kind !== "unreachable")) throw error;
      await wait(PAUSE_MS * attempt);
      return decideTogether(items, attempt + 1);
    }
  }

  /** What a lane decides under the locks would void the other lane's guess, and that guess its own: one at a time. */
  function decideLocked(items: readonly BatchItem[]): Promise<DecidedBatch> {
    const decide = async () => {
      const batch = await transact(transactions, (query) => decideBatch({ query, newId, at: clock.now() }, items));
      remembered.learn(batch.capacity);
      return batch;
    };
    if (items.every(isExpiry)) return decide();
    const decided = lastGuess.then(decide);
    lastLocked = decided.then(nothing, nothing);
    return decided;
  }

  /** Undefined where there is nothing to go by, or it has changed: then the locks are taken. */
  async function writeGuess(items: readonly BatchItem[]): Promise<PromiseSettledResult<LeaseOutcome>[] | undefined> {
    if (items.some(isExpiry)) return undefined;
    await lastLocked;
    const guess = remembered.guess(items, clock.now());
    if (!guess) return undefined;
    const { capacity, outcomes, assumed, holds } = guess;
    const statement = statementOf(capacity, assumed);
    keepTold(capacity);
    countRevisions(capacity);
    // Each builds on the one before: decided while that is committed, and sent after it.
    const written = lastGuess.then(() => (holds() ? transactions.query(statement) : undefined));
    lastGuess = written.then(nothing, nothing);
    try {
      if (!(await written)) return undefined;
    } catch (err) {
      remembered.forget();
      logger.debug({ err }, "a guess at capacity came to nothing; it is decided under the locks");
      return undefined;
    }
    tellAll(capacity);
    return outcomes.map((value) => ({ status: "fulfilled", value }));
  }

  function tellAll(capacity: Capacity): void {
    if (capacity.announces) announced();
    if (capacity.told.size === 0) return;
    tell(context, capacity).catch((err: unknown) => logger.warn({ err }, "a lease's wake-up was lost"));
  }

  return {
    async submit(operation) {
      lastAsked = performance.now();
      if (operation.kind !== "acquire" || "poolId" in operation.target) return submit({ operation });
      const candidates = await candidatePools(client, operation.tenantId, operation.target);
      return submit({ operation, candidates });
    },
    expire(operations) {
      const decided = lastExpiry.then(() => decideApart(operations.map((operation) => ({ operation }))));
      lastExpiry = decided.then(nothing, nothing);
      return decided;
    },
    isAsked: () => performance.now() - lastAsked < ASKED_WITHIN_MS,
  };
}

const nothing = () => undefined;

/** Those come together, apart from the lanes. */
function isExpiry({ operation }: BatchItem): boolean {
  return operation.kind === "expire";
}

function tooMany(): Exhausted {
  const description = `${MOST_WAITING} lease operations wait already: ask again in a moment`;
  return new Exhausted({ subject: "service:lease-operations", description, retryAfterMs: RETRY_MS });
}
