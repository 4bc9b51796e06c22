import { randomBytes } from "node:crypto";
import type { HandlerContext } from "@connectrpc/connect";
import type { CloudEvent } from "@runtime-cloud/contracts/events/cloud-event";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { NewId } from "@runtime-cloud/service-kit/ids";

/** Why a change happens: stamped on its history row and carried by every event that it announces. */
export interface Cause {
  /** Who asked: the credential's subject, `event:<handler>` or `deadline:<kind>`. At most 200 characters. */
  actor: string;
  /** Shared by everything that one request set off, across services. */
  correlationId: string;
  /** The id of the event that caused this change; absent for a request or a deadline. */
  causationId?: string;
  /** W3C trace context of the request or event. */
  traceparent?: string;
}

/** Names the request that a call is part of. */
export const CORRELATION_HEADER = "x-correlation-id";
const CORRELATION_ID = /^[\x21-\x7e]{1,128}$/;
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The cause of a call: its principal; the caller's correlation id and trace when it sent well-formed ones. */
export function callCause(context: HandlerContext, newId: NewId): Cause {
  const correlationId = context.requestHeader.get(CORRELATION_HEADER) ?? "";
  const traceparent = context.requestHeader.get("traceparent") ?? "";
  return {
    actor: principalOf(context).subject,
    correlationId: CORRELATION_ID.test(correlationId) ? correlationId : newId(),
    traceparent: TRACEPARENT.test(traceparent) ? traceparent : newTraceparent(),
  };
}

/** The cause of what a handler does about an event: the correlation goes on, the event is the causation. */
export function eventCause(event: CloudEvent, handler: string): Cause {
  return {
    actor: `event:${handler}`,
    correlationId: event.correlationid ?? event.id,
    causationId: event.id,
    ...(event.traceparent !== undefined && { traceparent: event.traceparent }),
  };
}

/** The cause of what time does: the actor is `deadline:<kind>`. */
export function deadlineCause(kind: string, newId: NewId): Cause {
  return { actor: `deadline:${kind}`, correlationId: newId(), traceparent: newTraceparent() };
}

/** A trace of its own, sampled. Random by its standard; nothing is decided by it. */
function newTraceparent(): string {
  return `00-${randomBytes(16).toString("hex")}-${randomBytes(8).toString("hex")}-01`;
}
