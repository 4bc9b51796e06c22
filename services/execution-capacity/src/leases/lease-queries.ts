import type { ServiceImpl } from "@connectrpc/connect";
import type { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { LeaseState as LeaseStateCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { type CapacityLease, LeaseState } from "../../generated/prisma/client.ts";
import { ownLease } from "../capacity/capacity-lease.ts";
import type { Context, Tx } from "../context.ts";
import { leaseMessage, leaseMessages } from "./lease-message.ts";

export function leaseQueryRoutes({
  client,
}: Context): Pick<ServiceImpl<typeof ExecutionCapacityService>, "getLease" | "listLeases"> {
  return {
    async getLease({ leaseId }, call) {
      const lease = await ownLease(client, principalOf(call).tenantId, leaseId);
      return { lease: await leaseMessage(client, lease) };
    },

    async listLeases(request, call) {
      const { tenantId } = principalOf(call);
      const { poolId, projectId, holderKind, holderId } = request;
      const state = enumNamed(LeaseState, LeaseStateCode[request.state]);
      const filter = {
        ...(poolId && { poolId }),
        ...(projectId && { projectId }),
        ...(holderKind && { holderKind }),
        ...(holderId && { holderId }),
        ...(state && { state }),
      };
      const after = pageAfter(request.pageToken, filter);
      const size = pageSize(request.pageSize);
      const found = await leasesBefore(client, { tenantId, filter, after, limit: size + 1 });
      const page = found.slice(0, size);
      const last = found.length > size ? page.at(-1) : undefined;
      return { leases: await leaseMessages(client, page), nextPageToken: last ? pageToken(last.id, filter) : "" };
    },
  };
}

interface Page {
  tenantId: string;
  filter: Partial<Pick<CapacityLease, "poolId" | "projectId" | "holderKind" | "holderId" | "state">>;
  after: string | undefined;
  limit: number;
}

/**
 * The newest leases first, those that ended long ago among them. The live ones are read first: what retention moves
 * meanwhile is found twice, never missed.
 */
async function leasesBefore(tx: Tx, { tenantId, filter, after, limit }: Page): Promise<CapacityLease[]> {
  const where = { tenantId, ...filter, ...(after !== undefined && { id: { lt: after } }) };
  const page = { where, orderBy: { id: "desc" }, take: limit } as const;
  const recent = await tx.capacityLease.findMany(page);
  const past = filter.state && isLive(filter.state) ? [] : await tx.pastLease.findMany(page);
  const known = new Set(recent.map(({ id }) => id));
  return [...recent, ...past.filter(({ id }) => !known.has(id))]
    .sort((one, other) => (one.id < other.id ? 1 : -1))
    .slice(0, limit);
}

function isLive(state: LeaseState): boolean {
  return state === "WAITING" || state === "ACTIVE";
}
