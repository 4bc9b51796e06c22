import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { CapacityLease as LeaseMessage } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { LeaseState, ReleaseReason } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { classifyDatabaseError } from "@runtime-cloud/service-kit/database-errors";
import type { CapacityLease } from "../../services/execution-capacity/generated/prisma/client.ts";

/** What an answer, or the database, says of a lease. */
export interface Seen {
  leaseId: string;
  tenantId: string;
  state: string;
  fencingToken: bigint | null;
  /** Once it has ended: all that may never change again. */
  end: string | null;
}

/** What an operation came to. */
export type Answer =
  | { lease: Seen; renewal?: string | undefined }
  /** A refusal's name, as in `service-kit/errors`. */
  | { refused: string; text: string }
  | { done: true };

/** Refusals that the service may give. Anything else is a failure that nobody foresaw. */
const refusals = new Map<Code, string>([
  [Code.InvalidArgument, "InvalidInput"],
  [Code.NotFound, "NotFound"],
  [Code.FailedPrecondition, "IllegalTransition"],
  [Code.ResourceExhausted, "Exhausted"],
  [Code.Unavailable, "Unavailable"],
]);
const domainErrors = new Set(refusals.values());

export function seenRow(row: CapacityLease): Seen {
  const { id, tenantId, state, fencingToken, endedAt, releaseReason, executionSeconds } = row;
  const end = endedAt && ended({ state, endedAt, reason: releaseReason ?? "none", executionSeconds });
  return { leaseId: id, tenantId, state, fencingToken, end };
}

export function seenMessage(message: LeaseMessage): Seen {
  const { leaseId, tenantId, endedAt: endedStamp, releaseReason, executionSeconds = null } = message;
  const state = LeaseState[message.state];
  const endedAt = endedStamp && timestampDate(endedStamp);
  const reason = releaseReason === undefined ? "none" : ReleaseReason[releaseReason];
  return {
    ...{ leaseId, tenantId, state, fencingToken: message.fencingToken ?? null },
    end: endedAt ? ended({ state, endedAt, reason, executionSeconds }) : null,
  };
}

interface End {
  state: string;
  endedAt: Date;
  reason: string;
  executionSeconds: bigint | null;
}

function ended({ state, endedAt, reason, executionSeconds }: End): string {
  return `${state} at ${endedAt.toISOString()} by ${reason} after ${executionSeconds ?? "no"} s`;
}

/** The refusal that an error stands for; undefined when it isn't one. */
export function refusalOf(error: unknown): { refused: string; text: string } | undefined {
  if (error instanceof ConnectError) {
    const refused = refusals.get(error.code);
    return refused === undefined ? undefined : { refused, text: error.rawMessage };
  }
  if (!(error instanceof Error)) return undefined;
  if (domainErrors.has(error.name)) return { refused: error.name, text: error.message };
  const lost = ["conflict", "unreachable", "outcome-unknown"].includes(classifyDatabaseError(error));
  return lost ? { refused: "Unavailable", text: error.message } : undefined;
}
