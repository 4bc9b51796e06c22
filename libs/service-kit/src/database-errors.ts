/*
 * What a failed database call means for its caller. Prisma 7 reports one cause in several shapes (an ORM statement, a
 * raw statement, a COMMIT, a lost connection), most of them without a P-code, so classes and codes alone miss some.
 * Everything here is read by shape: each service generates its own Prisma client, with its own error classes.
 */

/**
 * - `conflict`: rolled back because of a concurrent transaction; repeat it from its reads.
 * - `unique`: a unique constraint refused the row; {@link uniqueConstraint} names it.
 * - `unreachable`: nothing was committed, since the database wasn't there or was too slow.
 * - `outcome-unknown`: the connection went while a statement, perhaps COMMIT, was under way. Never repeat it blindly.
 * - `missing`: the row to change isn't there, or its version moved.
 */
export type DatabaseErrorClass = "conflict" | "unique" | "unreachable" | "outcome-unknown" | "missing" | "other";

export function classifyDatabaseError(error: unknown): DatabaseErrorClass {
  const cause = driverCause(error);
  return (
    lookUp(byKind, property(cause, "kind")) ??
    lookUp(byCode, property(cause, "originalCode")) ??
    lookUp(byCode, property(error, "code")) ??
    byMessage(property(error, "message")) ??
    "other"
  );
}

/** The name of the constraint that refused the row, for an error of class `unique`. */
export function uniqueConstraint(error: unknown): string | undefined {
  if (classifyDatabaseError(error) !== "unique") return undefined;
  const constraint = property(driverCause(error), "constraint");
  const named = property(constraint, "index") ?? property(error, "constraint");
  if (typeof named === "string") return named;
  const fields = property(constraint, "fields") ?? property(property(error, "meta"), "target");
  return Array.isArray(fields) ? fields.join(", ") : typeof fields === "string" ? fields : undefined;
}

/** Kinds of `DriverAdapterError` (@prisma/driver-adapter-utils). */
const byKind = new Map<unknown, DatabaseErrorClass>([
  ["TransactionWriteConflict", "conflict"],
  ["UniqueConstraintViolation", "unique"],
  ["DatabaseNotReachable", "unreachable"],
  ["TooManyConnections", "unreachable"],
  ["TlsConnectionError", "unreachable"],
  ["ConnectionClosed", "outcome-unknown"],
  ["SocketTimeout", "outcome-unknown"],
]);

/** Prisma's P-codes, PostgreSQL's SQLSTATEs and Node's socket codes; the three never collide. */
const byCode = new Map<unknown, DatabaseErrorClass>([
  ["P2034", "conflict"],
  ["40001", "conflict"], // serialization_failure
  ["40P01", "conflict"], // deadlock_detected
  ["55P03", "conflict"], // lock_timeout, NOWAIT
  ["P2002", "unique"],
  ["23505", "unique"],
  ["P2025", "missing"],
  ["P1001", "unreachable"],
  ["P1002", "unreachable"],
  ["P2024", "unreachable"], // no free connection in the pool
  ["P2028", "unreachable"], // an interactive transaction didn't start, or outlived its timeout: rolled back either way
  ["P2037", "unreachable"],
  ["08001", "unreachable"],
  ["08004", "unreachable"],
  ["25P03", "unreachable"], // idle_in_transaction_session_timeout: the server rolled back
  ["53300", "unreachable"], // too_many_connections
  ["57014", "unreachable"], // statement_timeout: too slow is as good as not there
  ["57P03", "unreachable"], // starting up or shutting down
  ["ECONNREFUSED", "unreachable"],
  ["ENOTFOUND", "unreachable"],
  ["EAI_AGAIN", "unreachable"],
  ["EHOSTUNREACH", "unreachable"],
  ["P1008", "outcome-unknown"],
  ["P1017", "outcome-unknown"],
  ["08000", "outcome-unknown"],
  ["08003", "outcome-unknown"],
  ["08006", "outcome-unknown"],
  ["08007", "outcome-unknown"],
  ["40003", "outcome-unknown"],
  ["57P01", "outcome-unknown"], // terminated by an operator, perhaps after a local commit
  ["57P02", "outcome-unknown"],
  ["ECONNRESET", "outcome-unknown"],
  ["EPIPE", "outcome-unknown"],
  ["ETIMEDOUT", "outcome-unknown"],
]);

/** Plain `Error`s of the `pg` driver and its pool, which carry no code. */
const messages: readonly [RegExp, DatabaseErrorClass][] = [
  [/^timeout exceeded when trying to connect/, "unreachable"],
  [/^Connection terminated due to connection timeout/, "unreachable"],
  [/^Client has encountered a connection error/, "unreachable"],
  [/^Client was closed and is not queryable/, "unreachable"],
  [/^Cannot use a pool after calling end/, "unreachable"],
  [/^Query read timeout/, "outcome-unknown"],
  [/^Connection terminated/, "outcome-unknown"],
];

function byMessage(message: unknown): DatabaseErrorClass | undefined {
  if (typeof message !== "string") return undefined;
  return messages.find(([pattern]) => pattern.test(message))?.[1];
}

function lookUp(table: ReadonlyMap<unknown, DatabaseErrorClass>, key: unknown): DatabaseErrorClass | undefined {
  return table.get(key);
}

/** The driver's own account: on a bare `DriverAdapterError` it is the cause, on a Prisma error it hides in `meta`. */
function driverCause(error: unknown): unknown {
  const hidden = property(property(property(error, "meta"), "driverAdapterError"), "cause");
  return hidden ?? property(error, "cause");
}

function property(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  const found: unknown = Reflect.get(value, key);
  return found;
}
