import type { Cause } from "@runtime-cloud/eventing/cause";
import { compiled } from "@runtime-cloud/state-machines/compiled";
import { quota } from "@runtime-cloud/state-machines/quota";
import type { CapacityLease, Quota, WaitReason } from "../../generated/prisma/client.ts";
import { type Capacity, keyOf } from "../capacity/capacity.ts";
import { keepWaitReason } from "../capacity/capacity-lease.ts";
import type { Obstacle } from "./obstacle.ts";
import { recordTransition } from "../capacity/recording.ts";

const decideQuota = compiled(quota);

/** The reasons that QuotaExceeded announces: a waiter on record with one of them was announced. */
const announced: readonly (WaitReason | null)[] = ["TENANT_QUOTA", "PROJECT_QUOTA"];

/** Keeps why a holder waits, and announces once that a quota blocks it, however often it is found blocked. */
export function announceObstacle(capacity: Capacity, lease: CapacityLease, obstacle: Obstacle, cause: Cause) {
  const { waitReason } = lease;
  if (announced.includes(waitReason) || (waitReason && !obstacle.quota)) return lease;
  if (obstacle.quota) exceed(capacity, lease, obstacle.quota, cause);
  return keepWaitReason(capacity, lease, obstacle.reason);
}

function exceed(capacity: Capacity, lease: CapacityLease, { row, limit }: { row: Quota; limit: string }, cause: Cause) {
  const { projectId, holderKind, holderId } = lease;
  const event = { type: "exceed", projectId, holderKind, holderId, limit } as const;
  const decision = decideQuota(row, event);
  if (!decision.accepted) return;
  const { state, emitted } = decision;
  row.version += 1;
  capacity.changes.quotas.add(keyOf(row.tenantId, row.projectId));
  recordTransition(
    capacity,
    { aggregate: quota.id, row, version: row.version, from: row.state, event: event.type, to: state, emitted },
    cause,
  );
}
