import type { ServiceImpl } from "@connectrpc/connect";
import type { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { pageAfter, pageSize, pageToken } from "@runtime-cloud/eventing/page";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Context, Tx } from "../context.ts";
import { scopeUsages, WHOLE_TENANT } from "./scope-usage.ts";

export function usageRoutes({
  client,
}: Context): Pick<ServiceImpl<typeof ExecutionCapacityService>, "getCapacityUsage"> {
  return {
    async getCapacityUsage({ projectId, activeOnly, ...request }, call) {
      const { tenantId } = principalOf(call);
      if (projectId) {
        const [tenant, ...projects] = await scopeUsages(client, tenantId, [WHOLE_TENANT, projectId]);
        return { projects, ...(tenant && { tenant }) };
      }
      const filter = { activeOnly };
      const after = pageAfter(request.pageToken, filter, PROJECT_ID) ?? WHOLE_TENANT;
      const size = pageSize(request.pageSize);
      const found = await projectsAfter(client, { tenantId, after, activeOnly, limit: size + 1 });
      const page = found.slice(0, size);
      const last = found.length > size ? page.at(-1) : undefined;
      const [tenant, ...projects] = await scopeUsages(client, tenantId, [WHOLE_TENANT, ...page]);
      return { projects, ...(tenant && { tenant }), nextPageToken: last ? pageToken(last, filter) : "" };
    },
  };
}

/** Any text that the API lets be one. */
const PROJECT_ID = /^[^\0]{1,128}$/u;

interface Page {
  tenantId: string;
  after: string;
  activeOnly: boolean;
  limit: number;
}

/** Projects that have held or waited for something, by name. */
async function projectsAfter(tx: Tx, { tenantId, after, activeOnly, limit }: Page): Promise<string[]> {
  const rows = await tx.$queryRaw<{ projectId: string }[]>`
    SELECT project_id AS "projectId" FROM (
      SELECT project_id FROM scope_usage
      WHERE tenant_id = ${tenantId} AND project_id > ${after}
        AND (NOT ${activeOnly} OR used_runs > 0 OR used_sandboxes > 0)
      UNION
      SELECT project_id FROM queue_place WHERE tenant_id = ${tenantId} AND project_id > ${after}
    ) AS project
    ORDER BY project_id LIMIT ${limit}`;
  return rows.map(({ projectId }) => projectId);
}
