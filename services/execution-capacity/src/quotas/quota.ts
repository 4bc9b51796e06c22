import { commit } from "@runtime-cloud/eventing/commit";
import { accept } from "@runtime-cloud/eventing/decision";
import { quota, type QuotaEvent } from "@runtime-cloud/state-machines/quota";
import type { Quota } from "../../generated/prisma/client.ts";
import type { ServiceUnit } from "../context.ts";

export async function advanceQuota(unit: ServiceUnit, row: Quota, event: QuotaEvent): Promise<Quota> {
  const { id, version } = row;
  return commit(unit, accept(quota, row, event), (columns) =>
    unit.tx.quota.update({ where: { id, version }, data: { ...columns, version: { increment: 1 } } }),
  );
}
