import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import { pageAfter, pageSize, pageToken, SEQUENCE } from "@runtime-cloud/eventing/page";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { Context } from "../context.ts";
import { unknownEnvironment } from "./inventory.ts";
import { inventoryChangeMessage } from "./inventory-change-message.ts";
import { changesBefore } from "./inventory-change-pages.ts";

/**
 * ListInventoryChanges: what has changed in an environment, newest first, as far back as it is kept. A page of large
 * changes has fewer of them than were asked for. Throws NotFound for another tenant's environment.
 */
export function listInventoryChanges({
  client,
}: Context): ServiceImpl<typeof RuntimeEnvironmentService>["listInventoryChanges"] {
  return async (request, call) => {
    const { environmentId } = request;
    const place = { id: environmentId, tenantId: principalOf(call).tenantId };
    if ((await client.inventory.count({ where: place })) === 0) throw unknownEnvironment(environmentId);
    const filter = { environmentId };
    const last = pageAfter(request.pageToken, filter, SEQUENCE);
    const before = last === undefined ? undefined : BigInt(last);
    const { changes, more } = await changesBefore(client, { environmentId, before, size: pageSize(request.pageSize) });
    return {
      changes: changes.map(inventoryChangeMessage),
      nextPageToken: more ? pageToken(String(changes.at(-1)?.revision), filter) : "",
    };
  };
}
