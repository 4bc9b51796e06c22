import { deadlineCause } from "@runtime-cloud/eventing/cause";
import type { DeadlineResult } from "@runtime-cloud/eventing/deadlines";
import { InvalidInput, Unavailable } from "@runtime-cloud/service-kit/errors";
import type { ReconciliationDirection } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { DUE_BATCH, endEach } from "../due.ts";
import { dueGroup } from "./due-groups.ts";
import { lockEnvironment } from "../inventory/inventory.ts";
import type { Place } from "../observers/observer.ts";
import { askAdoption } from "./proposal-adoption.ts";
import { adoptionPreview } from "./proposal-preview.ts";
import { propose } from "./propose.ts";
import { type AskedAdoption, factsOf } from "./request-proposal.ts";

const KIND = "auto-propose";
/** For what IaCProvisioningService is asked about one environment. */
const ASK_TIMEOUT_MS = 10_000;

/**
 * Makes the proposals that environments' configurations ask for, once no other proposal of the environment is under way
 * and nothing in the group has changed for the delay. What can't be adopted is proposed with a preview that says why, so
 * that somebody sees it.
 */
export async function proposeDue(context: Context): Promise<DeadlineResult> {
  const due = await dueEnvironments(context);
  const asked = await askAdoptions(context, due);
  const ready = due.filter(({ id, direction }) => direction !== "ADOPT_OBSERVED" || asked.has(id));
  return endEach(context, KIND, ready, async (unit, place) => {
    const inventory = await lockEnvironment(unit.tx, place);
    const grouping = await dueGroup(unit.tx, inventory);
    if (!grouping) return false;
    const adoption = asked.get(place.id);
    if (grouping.direction === "ADOPT_OBSERVED" && adoption?.about !== factsOf(grouping)) return false;
    await propose(unit, context, inventory, { ...grouping, preview: adoption?.preview });
    return true;
  });
}

/** In any order, so that those that can't be proposed yet never stand in the way of others. */
async function dueEnvironments({ client }: Context): Promise<DueEnvironment[]> {
  return client.$queryRaw<DueEnvironment[]>`
    SELECT id, tenant_id AS "tenantId", propose_direction AS direction FROM inventory
    WHERE state <> 'RETIRED' AND propose_after_seconds IS NOT NULL
      AND EXISTS (
        SELECT FROM finding
        WHERE environment_id = inventory.id AND state = 'OPEN' AND vanished_at IS NULL AND kind <> 'HEALTH_DEGRADED'
          AND changed_at <= statement_timestamp() - make_interval(secs => propose_after_seconds)
          AND NOT EXISTS (
            SELECT FROM proposal
            WHERE environment_id = inventory.id AND state IN ('REJECTED', 'FAILED', 'COMPLETED')
              AND finding.id = ANY (finding_ids) AND ended_at >= finding.changed_at))
      AND NOT EXISTS (
        SELECT FROM proposal WHERE environment_id = inventory.id AND state IN ('PROPOSED', 'ACCEPTING', 'ACCEPTED'))
    ORDER BY random() LIMIT ${DUE_BATCH}`;
}

/** By environment. Nobody else is asked once IaCProvisioningService doesn't answer. */
async function askAdoptions(context: Context, due: readonly DueEnvironment[]) {
  const asked = new Map<string, AskedAdoption>();
  try {
    for (const place of due.filter(({ direction }) => direction === "ADOPT_OBSERVED")) {
      const adoption = await askAboutDue(context, place);
      if (adoption) asked.set(place.id, adoption);
    }
  } catch (err) {
    if (!(err instanceof Unavailable)) throw err;
  }
  return asked;
}

async function askAboutDue(context: Context, { id, tenantId }: Place): Promise<AskedAdoption | undefined> {
  const inventory = await context.client.inventory.findFirst({ where: { id, tenantId } });
  const grouping = inventory && (await dueGroup(context.client, inventory));
  if (!grouping) return undefined;
  const about = factsOf(grouping);
  const look = { cause: deadlineCause(KIND, context.newId), timeoutMs: ASK_TIMEOUT_MS };
  try {
    return { about, preview: adoptionPreview(await askAdoption(context, { tenantId }, grouping, look)) };
  } catch (err) {
    if (!(err instanceof InvalidInput)) throw err;
    return { about, preview: { failure: err.message } };
  }
}

interface DueEnvironment extends Place {
  direction: ReconciliationDirection;
}
