import type { DescMessage, DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  QuotaFailureSchema,
  RetryInfoSchema,
} from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import { classifyDatabaseError } from "./database-errors.ts";
import {
  AlreadyExists,
  Denied,
  Exhausted,
  IllegalTransition,
  InvalidInput,
  NotFound,
  OutOfRange,
  StaleRow,
  Unavailable,
} from "./errors.ts";
import type { Logger } from "./logger.ts";

/** `google.rpc.ErrorInfo.domain` of every error that a service of Runtime Cloud makes. */
export const errorDomain = "runtime-cloud";

/**
 * The outermost interceptor of a server: whatever a handler throws leaves as one of our codes with `google.rpc`
 * details, or as `internal error`. What we didn't foresee is logged with its text; an expected race is not.
 */
export function mapErrors(logger: Logger): Interceptor {
  return (next) => async (request) => {
    const refuse = refuser(logger, request);
    try {
      const response = await next(request);
      return response.stream ? { ...response, message: refusing(response.message, refuse) } : response;
    } catch (error) {
      throw refuse(error);
    }
  };
}

/**
 * What a caller is told of an error, for those that answer a part of a request by itself. An error that many parts
 * share is logged once.
 */
export function refuser(
  logger: Logger,
  { method, signal }: { method: DescMethod; signal: AbortSignal },
): (error: unknown) => ConnectError {
  let logged: unknown;
  return (error) => {
    const refusal = refusalOf(error, signal);
    if (!refusal.logged || logged === error) return refusal.error;
    logged = error;
    const fields = { err: error, method: `${method.parent.typeName}/${method.name}`, code: Code[refusal.error.code] };
    logger[refusal.logged](fields, "call failed");
    return refusal.error;
  };
}

/** The one table from domain errors to codes. Undefined means: not one of ours. */
export function toConnectError(error: unknown): ConnectError | undefined {
  if (error instanceof NotFound) return refusal(error, Code.NotFound, info("NOT_FOUND"));
  if (error instanceof IllegalTransition) {
    const { reason, allowed, ...transition } = error.refusal;
    const metadata = { ...transition, allowed: allowed.join(",") };
    return refusal(error, Code.FailedPrecondition, info(upperSnake(reason), metadata));
  }
  if (error instanceof StaleRow) return refusal(error, Code.Aborted, info("STALE_ROW"));
  if (error instanceof InvalidInput) {
    const fieldViolations = error.violations.map(({ field, description }) => ({ field, description }));
    return refusal(error, Code.InvalidArgument, info("INVALID_INPUT"), detail(BadRequestSchema, { fieldViolations }));
  }
  if (error instanceof AlreadyExists) return refusal(error, Code.AlreadyExists, info("ALREADY_EXISTS"));
  if (error instanceof OutOfRange) {
    return refusal(error, Code.OutOfRange, info("OUT_OF_RANGE", { ...error.metadata }));
  }
  if (error instanceof Exhausted) {
    const violations = [{ subject: error.subject, description: error.message }];
    const quota = detail(QuotaFailureSchema, { violations });
    return refusal(error, Code.ResourceExhausted, info("EXHAUSTED"), quota, retryAfter(error.retryAfterMs));
  }
  if (error instanceof Denied) return refusal(error, Code.PermissionDenied, info("DENIED"));
  if (error instanceof Unavailable) return refusal(error, Code.Unavailable, info("UNAVAILABLE"), retryAfter(RETRY_MS));
  return undefined;
}

/** When a caller may try again what was unavailable. */
const RETRY_MS = 1_000;

/** These codes mean that nobody foresaw the error, so its text is for the log only. */
const unforeseen: readonly Code[] = [Code.Internal, Code.Unknown, Code.DataLoss];

interface Outcome {
  error: ConnectError;
  logged?: "warn" | "error";
}

function refusalOf(error: unknown, signal: AbortSignal): Outcome {
  const known = toConnectError(error);
  if (known) return error instanceof Unavailable ? { error: known, logged: "warn" } : { error: known };
  if (error instanceof ConnectError && !unforeseen.includes(error.code)) return { error };
  if (signal.aborted && isAbort(error, signal)) return { error: ConnectError.from(signal.reason, Code.Canceled) };
  return databaseRefusal(error) ?? { error: hidden("internal error", Code.Internal, error), logged: "error" };
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (typeof error === "object" && error !== null && isAbortError(error));
}

function isAbortError(error: object): boolean {
  return "name" in error && error.name === "AbortError";
}

function databaseRefusal(error: unknown): Outcome | undefined {
  switch (classifyDatabaseError(error)) {
    case "conflict":
      return { error: hidden("changed by another call at the same time: try again", Code.Aborted, error) };
    case "unreachable":
      return { error: hidden("temporarily unavailable: try again", Code.Unavailable, error), logged: "warn" };
    case "outcome-unknown":
      return {
        error: hidden("the outcome is unknown: repeat the call with the same key", Code.Unavailable, error),
        logged: "warn",
      };
    case "unique":
    case "missing":
    case "other":
      return undefined;
  }
}

async function* refusing<T>(messages: AsyncIterable<T>, refuse: (error: unknown) => ConnectError): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw refuse(error);
  }
}

function refusal(error: Error, code: Code, ...details: Detail[]): ConnectError {
  return new ConnectError(error.message, code, undefined, details, error);
}

function hidden(text: string, code: Code, cause: unknown): ConnectError {
  return new ConnectError(text, code, undefined, undefined, cause);
}

interface Detail {
  desc: DescMessage;
  value: MessageInitShape<DescMessage>;
}

function detail<Desc extends DescMessage>(desc: Desc, value: MessageInitShape<Desc>): Detail {
  return { desc, value };
}

function info(reason: string, metadata: Record<string, string> = {}): Detail {
  return detail(ErrorInfoSchema, { reason, domain: errorDomain, metadata });
}

function retryAfter(milliseconds: number): Detail {
  return detail(RetryInfoSchema, { retryDelay: durationFromMs(milliseconds) });
}

function upperSnake(words: string): string {
  return words
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/[^A-Za-z0-9]+/g, "_")
    .toUpperCase();
}
