import type { Clock } from "@runtime-cloud/service-kit/clock";
import type { NewId } from "@runtime-cloud/service-kit/ids";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import { transact, type TransactionalClient, type TransactOptions } from "@runtime-cloud/service-kit/transact";
import type { Cause } from "./cause.ts";

/** One transaction and what is needed to write in it. Lives no longer than the transaction does. */
export interface Unit<Tx> {
  tx: Tx;
  cause: Cause;
  /** When the unit began, by this process's clock. What must be exact is read from the database's clock. */
  at: Date;
  newId: NewId;
  /** Says that the transaction announces an event, so that its relay is woken. */
  announces(): void;
  /**
   * Runs `hint` once the transaction is committed. Best effort: a hint may only wake something that would find its
   * work in the database anyway, since a crash, or a Redis that is down, loses it.
   */
  after(hint: () => Promise<void>): void;
}

/** What a unit of work is made with; a service's context has these. */
export interface UnitContext<Tx> {
  client: TransactionalClient<Tx>;
  clock: Clock;
  newId: NewId;
  logger: Logger;
  /** Told after the commit of a transaction that announces events: a hint for whoever publishes them. */
  announced?: () => void;
}

/**
 * Does `work` in one transaction. It runs again, from the start and in a new transaction, when it loses a race (a
 * write conflict, a stale row): so it must read what it decides on through `unit.tx` and have no effect elsewhere.
 */
export function unitOfWork<Tx, T>(
  context: UnitContext<Tx>,
  cause: Cause,
  work: (unit: Unit<Tx>) => Promise<T>,
  options?: TransactOptions,
): Promise<T> {
  return unitsOfWork(context, (_tx, unit) => work(unit(cause)), options);
}

/** Like {@link unitOfWork}, for work with several causes in one transaction: all of it is committed, or none. */
export async function unitsOfWork<Tx, T>(
  { client, clock, newId, logger, announced }: UnitContext<Tx>,
  work: (tx: Tx, unit: (cause: Cause) => Unit<Tx>) => Promise<T>,
  options?: TransactOptions,
): Promise<T> {
  let hints: (() => Promise<void>)[] = [];
  let announcing = false;
  const run = (tx: Tx) => {
    hints = [];
    const announces = () => void (announcing = true);
    const after = (hint: () => Promise<void>) => void hints.push(hint);
    return work(tx, (cause) => ({ tx, cause, at: clock.now(), newId, announces, after }));
  };
  const result = await transact(client, run, options);
  if (announcing) announced?.();
  for (const hint of hints) give(hint, logger);
  return result;
}

/** Not awaited: whoever waits for the result must not wait for a queue. */
function give(hint: () => Promise<void>, logger: Logger): void {
  hint().catch((err: unknown) => logger.warn({ err }, "a wake-up was lost; a sweep finds its work"));
}
