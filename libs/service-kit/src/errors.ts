/*
 * The refusals that a service knows. Their messages reach the caller: they name the thing, its state and the way out,
 * and never quote a driver, a query or a path. `error-codes.ts` gives each its code on the wire.
 */

/** The id is unknown, or belongs to another tenant: the two must look the same. */
export class NotFound extends Error {
  override readonly name = "NotFound";
}

/** The aggregate's machine has no such edge from this state, or a guard holds it. */
export class IllegalTransition extends Error {
  override readonly name = "IllegalTransition";
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(described(refusal));
    this.refusal = refusal;
  }
}

/** The row moved between its read and its write. `transact` reads and decides again before a caller ever sees this. */
export class StaleRow extends Error {
  override readonly name = "StaleRow";
}

/** The request can't mean anything: every field that is wrong is named, by its JSON path. */
export class InvalidInput extends Error {
  override readonly name = "InvalidInput";
  readonly violations: readonly FieldViolation[];

  constructor(violations: readonly FieldViolation[]) {
    super(violations.map(({ field, description }) => (field ? `${field}: ${description}` : description)).join("; "));
    this.violations = violations;
  }
}

/** Something else is there under this name already, and doesn't give way. */
export class AlreadyExists extends Error {
  override readonly name = "AlreadyExists";
}

/** The request makes sense, but points to where nothing is, or nothing any more. `metadata` says where something is. */
export class OutOfRange extends Error {
  override readonly name = "OutOfRange";
  readonly metadata: Readonly<Record<string, string>>;

  constructor(message: string, metadata: Readonly<Record<string, string>>) {
    super(message);
    this.metadata = metadata;
  }
}

/** A limit is reached. `subject` names whose limit, `retryAfterMs` when a repeat may succeed. */
export class Exhausted extends Error {
  override readonly name = "Exhausted";
  readonly subject: string;
  readonly retryAfterMs: number;

  constructor({ subject, description, retryAfterMs }: { subject: string; description: string; retryAfterMs: number }) {
    super(description);
    this.subject = subject;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The caller is known, and may not. */
export class Denied extends Error {
  override readonly name = "Denied";
}

/** Something this call needs isn't there right now: the same call may succeed later. */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
}

export interface Refusal {
  aggregate: string;
  id: string;
  state: string;
  event: string;
  /** `not-in-this-state`, or the name of the guard that held. */
  reason: string;
  /** The events that the aggregate takes in this state; with `not-in-this-state`, none means that it is final. */
  allowed: readonly string[];
}

export interface FieldViolation {
  /** The JSON path of the field, as in `operations[2].holderId`. */
  field: string;
  description: string;
}

function described({ aggregate, id, state, event, reason, allowed }: Refusal): string {
  if (allowed.length > 0)
    return `${aggregate} ${id} is ${state}: ${event} refused (${reason}); allowed: ${allowed.join(", ")}`;
  if (reason === "not-in-this-state") return `${aggregate} ${id} is ${state}, which is final: ${event} refused`;
  return `${aggregate} ${id} is ${state}: ${event} refused (${reason})`;
}
