import type { Inventory } from "../../generated/prisma/client.ts";
import type { ServiceUnit } from "../context.ts";
import { advanceFindings } from "../findings/finding-transitions.ts";
import { advanceInventory } from "../inventory/inventory.ts";
import { endProposal, undecidedProposal } from "../proposals/proposal-transitions.ts";

/**
 * Ends observation for good: nothing differs any more where nobody looks. An accepted proposal goes on to the end of
 * its run. The environment must be locked.
 */
export async function retire(unit: ServiceUnit, inventory: Inventory): Promise<Inventory> {
  const retired = await advanceInventory(unit, inventory, { type: "retire" });
  const undecided = await undecidedProposal(unit, inventory.id);
  if (undecided) await endProposal(unit, undecided, { type: "lapse" });
  const findings = await unit.tx.finding.findMany({
    where: { environmentId: inventory.id, state: { not: "RESOLVED" } },
  });
  await advanceFindings(unit, findings, { type: "resolve", at: unit.at });
  return retired;
}
