import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { until } from "@runtime-cloud/local-servers/until";
import { controlPlane } from "@runtime-cloud/runtime-cloud-host/story/control-plane";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type { ProvisioningProcess } from "./environment-servers.ts";
import type { ObservingService } from "./observing-service.ts";

const ALL_APPLIED_WITHIN_MS = 300_000;
/** What the baseline makes. */
const RESOURCES = 3;
/** The file of it that somebody edits, and how. */
const FILE = "quota.yaml";
const APPLIED = 'pods: "100"';
const EDITED = 'pods: "7"';
export const EDITED_FACT = `${FILE} spec.hard.pods`;

/** Announces so many environments, and answers their ids once each has its baseline applied and seen. */
export async function createEnvironments(service: ObservingService, count: number): Promise<readonly string[]> {
  const { announce } = controlPlane(service.queues, systemClock, uuidv7);
  const { tenantId, aside } = service;
  const projectId = uuidv7();
  const ids = Array.from({ length: count }, () => uuidv7());
  for (const environmentId of ids) {
    const fields = { environmentId, tenantId, projectId, class: EnvironmentClass.TEST };
    await announce(EnvironmentCreatedSchema, { id: environmentId, tenantId, projectId }, fields);
  }
  await until("every baseline to be applied and seen", ALL_APPLIED_WITHIN_MS, async () => {
    const { rows } = await aside.query<{ seen: number }>(SEEN_AS_APPLIED, [ids, RESOURCES]);
    return rows[0]?.seen === count || undefined;
  });
  return ids;
}

/** No look is under way or asked for any more. */
const SEEN_AS_APPLIED = `
  SELECT count(*)::int AS seen FROM inventory JOIN tracked_specification ON inventory_id = inventory.id
  WHERE inventory.id = ANY($1::text[]) AND state = 'FRESH' AND look_correlation_id IS NULL
    AND applied_version = 1 AND resource_count = $2`;

/** Edits a file of an environment's baseline by hand. */
export async function editByHand({ targetsDir }: ProvisioningProcess, tenantId: string, id: string): Promise<void> {
  const file = path.join(targetsDir, tenantId, id, "baseline", FILE);
  const text = await readFile(file, "utf8");
  if (!text.includes(APPLIED)) throw new Error(`${FILE} doesn't say ${APPLIED}`);
  await writeFile(file, text.replace(APPLIED, EDITED));
}
