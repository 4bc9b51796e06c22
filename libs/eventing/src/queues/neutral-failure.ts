import { MalformedEvent } from "@runtime-cloud/contracts/events/cloud-event";
import {
  Denied,
  Exhausted,
  IllegalTransition,
  InvalidInput,
  NotFound,
  StaleRow,
  Unavailable,
} from "@runtime-cloud/service-kit/errors";
import { UnrecoverableError } from "bullmq";

const tellable = [Denied, Exhausted, IllegalTransition, InvalidInput, NotFound, StaleRow, Unavailable];

/**
 * What a failed job may say in the queue, where dashboards show it: a refusal's own words, never a driver's text, which
 * is for the log. A malformed event isn't tried again.
 */
export function neutralFailure(error: unknown): Error {
  if (error instanceof MalformedEvent) return new UnrecoverableError(error.message);
  if (error instanceof Error && tellable.some((kind) => error instanceof kind)) return new Error(error.message);
  return new Error("internal error: the service's log has it under this job's id");
}
