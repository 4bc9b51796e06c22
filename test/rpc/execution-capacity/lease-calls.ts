import { anyUnpack } from "@bufbuild/protobuf/wkt";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "@runtime-cloud/contracts/google/rpc/error_details_pb";
import type { LeaseResult } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import { attempt, type CapacityClient } from "../../_support/execution-capacity.ts";

/** Operations of a batch or a session. */
export const acquire = (value: ReturnType<typeof attempt>) => ({ operation: { case: "acquire" as const, value } });

export const renew = (leaseId: string, fencingToken: bigint, seconds = 60n) => ({
  operation: { case: "renew" as const, value: { leaseId, fencingToken, ttl: { seconds } } },
});

export const release = (leaseId: string, fencingToken?: bigint) => ({
  operation: { case: "release" as const, value: { leaseId, ...(fencingToken !== undefined && { fencingToken }) } },
});

/** A slot of a pool, held. */
export async function held(tenant: CapacityClient, poolId: string): Promise<{ leaseId: string; fencingToken: bigint }> {
  const { lease } = await tenant.acquireLease(attempt(poolId));
  return { leaseId: lease?.leaseId ?? "", fencingToken: lease?.fencingToken ?? 0n };
}

export function leaseOf(one: LeaseResult | undefined) {
  const result = one?.result;
  return result?.case === undefined || result.case === "error" ? undefined : result.value.lease;
}

/** A result's error: its code, its text and what its details tell. */
export function failureOf(one: LeaseResult | undefined) {
  if (one?.result.case !== "error") throw new Error(`no error but ${one?.result.case}`);
  const { code, message, details } = one.result.value;
  return {
    code,
    message,
    fields: details.flatMap((detail) =>
      (anyUnpack(detail, BadRequestSchema)?.fieldViolations ?? []).map(({ field }) => field),
    ),
    reasons: details.flatMap((detail) => anyUnpack(detail, ErrorInfoSchema)?.reason ?? []),
    retries: details.flatMap((detail) => anyUnpack(detail, RetryInfoSchema)?.retryDelay ?? []).length,
  };
}
