import { create } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import {
  type AcquireLeaseResponse,
  AcquireLeaseResponseSchema,
  type LeaseResult,
  LeaseResultSchema,
  type ReleaseLeaseResponse,
  ReleaseLeaseResponseSchema,
  type RenewLeaseResponse,
  RenewLeaseResponse_Result,
  RenewLeaseResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { statusMessage } from "@runtime-cloud/service-kit/status-message";
import { type LeaseMessage, lifetime } from "./lease-message.ts";
import type { LeaseOperation, LeaseOutcome } from "../desk/lease-operation.ts";

/** What an operation came to, as one result of many. `message` is the outcome's lease. */
export function leaseResult(kind: LeaseOperation["kind"], outcome: LeaseOutcome, message: LeaseMessage): LeaseResult {
  switch (kind) {
    case "acquire":
      return create(LeaseResultSchema, { result: { case: "acquired", value: acquired(outcome, message) } });
    case "renew":
      return create(LeaseResultSchema, { result: { case: "renewed", value: renewed(outcome, message) } });
    case "release":
      return create(LeaseResultSchema, { result: { case: "released", value: released(message) } });
  }
}

/** An operation's error beside the results of others. */
export function failedResult(error: ConnectError): LeaseResult {
  return create(LeaseResultSchema, { result: { case: "error", value: statusMessage(error) } });
}

export function acquired({ lease, now }: LeaseOutcome, message: LeaseMessage): AcquireLeaseResponse {
  return create(AcquireLeaseResponseSchema, { lease: message, ...lifetime(lease, now) });
}

/** The lifetime is told only to who may count on it: not beside a stale token. */
export function renewed({ lease, now, renewal }: LeaseOutcome, message: LeaseMessage): RenewLeaseResponse {
  const left = renewal === "RENEWED" ? lifetime(lease, now) : {};
  return create(RenewLeaseResponseSchema, {
    result: renewal ? RenewLeaseResponse_Result[renewal] : RenewLeaseResponse_Result.UNSPECIFIED,
    lease: message,
    ...left,
  });
}

export function released(message: LeaseMessage): ReleaseLeaseResponse {
  return create(ReleaseLeaseResponseSchema, { lease: message });
}
