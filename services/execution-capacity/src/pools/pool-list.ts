import type { MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type {
  ListWorkerPoolsRequestSchema,
  ListWorkerPoolsResponseSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/pools_pb";
import {
  PoolKind as PoolKindCode,
  PoolState as PoolStateCode,
} from "@runtime-cloud/contracts/runtimecloud/types/v1/capacity_pb";
import { pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { PoolKind, PoolState, type Prisma, type WorkerPool } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";
import { carrying } from "./pool-labels.ts";
import { poolMessages } from "./pool-message.ts";

type Request = MessageShape<typeof ListWorkerPoolsRequestSchema>;
type Response = MessageInitShape<typeof ListWorkerPoolsResponseSchema>;

/** A page of the tenant's pools that pass the request's filters, by id. Throws InvalidInput for a wrong page token. */
export async function listPools(tx: Tx, tenantId: string, request: Request): Promise<Response> {
  const filter = {
    state: enumNamed(PoolState, PoolStateCode[request.state]),
    kind: enumNamed(PoolKind, PoolKindCode[request.kind]),
    labels: Object.entries(request.labels).sort().flat(),
    includeShared: request.includeShared,
  };
  const after = pageAfter(request.pageToken, filter, SORT_KEY);
  const size = pageSize(request.pageSize);
  const rows = await tx.workerPool.findMany({
    where: {
      OR: [{ tenantId }, ...(request.includeShared ? [{ shared: true }] : [])],
      ...(filter.state && { state: filter.state }),
      ...(filter.kind && { kind: filter.kind }),
      AND: [...carrying(request.labels), ...(after === undefined ? [] : [behind(after)])],
    },
    orderBy: [{ id: "asc" }, { shared: "asc" }],
    take: size + 1,
  });
  const page = rows.slice(0, size);
  const last = rows.length > size ? page.at(-1) : undefined;
  return { pools: await poolMessages(tx, page), nextPageToken: last ? pageToken(sortKey(last), filter) : "" };
}

/** Of two pools of one name that a tenant sees, one is its own, and the other is shared. */
const SORT_KEY = /^[a-z0-9-]{1,63}(\+shared)?$/;
const SHARED = "+shared";

function sortKey({ id, shared }: WorkerPool): string {
  return shared ? id + SHARED : id;
}

function behind(key: string): Prisma.WorkerPoolWhereInput {
  const id = key.replace(SHARED, "");
  return { OR: [{ id: { gt: id } }, ...(key === id ? [{ id, shared: true }] : [])] };
}
