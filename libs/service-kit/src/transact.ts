import { setTimeout as wait } from "node:timers/promises";
import { classifyDatabaseError } from "./database-errors.ts";
import { StaleRow } from "./errors.ts";

/** The part of a generated Prisma client that runs an interactive transaction. */
export interface TransactionalClient<Tx> {
  $transaction<R>(work: (tx: Tx) => Promise<R>, options?: TransactionOptions): Promise<R>;
}

export interface TransactionOptions {
  /** Longest wait for a connection, in milliseconds. */
  maxWait?: number;
  /** Longest life of the transaction before its COMMIT, in milliseconds. The server's own timeouts bound the rest. */
  timeout?: number;
  isolationLevel?: "ReadUncommitted" | "ReadCommitted" | "RepeatableRead" | "Serializable";
}

export interface TransactOptions extends TransactionOptions {
  tries?: number;
  /** Source of the backoff's jitter, from 0 to 1. */
  random?: () => number;
}

const MAX_TRIES = 5;
const FIRST_BACKOFF_MS = 10;
const MAX_BACKOFF_MS = 250;

/**
 * Runs `work` in one transaction, from its reads again when a concurrent transaction won: on a serialization failure,
 * a deadlock or {@link StaleRow}, up to five tries with full-jitter backoff. So `work` may run several times and must
 * do nothing but read and write `tx`. A lost connection is never repeated here, since the commit may have happened.
 */
export async function transact<Tx, T>(
  client: TransactionalClient<Tx>,
  work: (tx: Tx) => Promise<T>,
  { tries = MAX_TRIES, random = Math.random, ...options }: TransactOptions = {},
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await client.$transaction(work, options);
    } catch (error) {
      if (attempt >= tries || !lostRace(error)) throw error;
      await wait(random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** attempt));
    }
  }
}

function lostRace(error: unknown): boolean {
  return error instanceof StaleRow || classifyDatabaseError(error) === "conflict";
}
