import { ReconciliationDirection as DirectionCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import type { Finding, Inventory } from "../generated/prisma/client.ts";
import type { ServiceUnit } from "./context.ts";
import type { Direction, Grouping } from "./propose.ts";
import { undecidedProposal } from "./proposal-transitions.ts";

/** The most findings that one proposal covers: its run closes the others of its specification as well. */
const MAX_FINDINGS = 200;

/** What a request asks to be proposed. Throws InvalidInput when its findings aren't those of one specification. */
export async function groupFindings(unit: ServiceUnit, inventory: Inventory, request: Request): Promise<Grouping> {
  const direction = availableDirection(request.direction);
  const undecided = await undecidedProposal(unit, inventory.id);
  const findings =
    request.findingIds.length > 0
      ? await namedFindings(unit, inventory, { ids: request.findingIds, undecidedId: undecided?.id })
      : await proposableFindings(unit, inventory, undecided?.id);
  return { direction, findings, undecided, specificationId: oneSpecification(inventory, findings) };
}

/** OPEN findings, and those that the undecided proposal covers, oldest first. */
async function proposableFindings(
  { tx }: ServiceUnit,
  { id: environmentId }: Inventory,
  undecidedId: string | undefined,
) {
  const covered = undecidedId === undefined ? [] : [{ state: "PROPOSED" as const, proposalId: undecidedId }];
  return tx.finding.findMany({
    where: { environmentId, OR: [{ state: "OPEN" }, ...covered] },
    orderBy: { id: "asc" },
    take: MAX_FINDINGS,
  });
}

async function namedFindings({ tx }: ServiceUnit, { id: environmentId }: Inventory, { ids, undecidedId }: Named) {
  const found = await tx.finding.findMany({ where: { environmentId, id: { in: [...ids] } } });
  const problem = (id: string): string | undefined => {
    const finding = found.find((each) => each.id === id);
    if (!finding) return `is no finding of environment ${environmentId}: ListFindings has its ids`;
    const isOurs = finding.state === "OPEN" || (finding.state === "PROPOSED" && finding.proposalId === undecidedId);
    return isOurs ? undefined : `is ${finding.state}: only an OPEN finding can be proposed`;
  };
  const violations = ids.flatMap((id, index) => {
    const description = problem(id);
    return description ? [{ field: `findingIds[${index}]`, description }] : [];
  });
  if (violations.length > 0) throw new InvalidInput(violations);
  return found;
}

function oneSpecification(inventory: Inventory, findings: readonly Finding[]): string {
  const [specificationId, ...others] = new Set(findings.map((finding) => finding.specificationId));
  if (specificationId === undefined) {
    const description = `has no open finding to reconcile: environment ${inventory.id} was seen as it should be`;
    throw new InvalidInput([{ field: "environmentId", description }]);
  }
  if (others.length === 0) return specificationId;
  const choices = [specificationId, ...others].map((id) => {
    const its = findings.filter((finding) => finding.specificationId === id);
    return `${its[0]?.specificationKind} ${id} with ${its
      .map((finding) => finding.id)
      .slice(0, MAX_SHOWN)
      .join(", ")}`;
  });
  const description = `must be findings of one specification; open are those of ${choices.join("; of ")}`;
  throw new InvalidInput([{ field: "findingIds", description }]);
}

/** How many findings of each specification an error names. */
const MAX_SHOWN = 20;

function availableDirection(direction: DirectionCode): Direction {
  if (direction === DirectionCode.REVERT_TO_SPECIFICATION) return "REVERT_TO_SPECIFICATION";
  if (direction === DirectionCode.REFRESH_STATE) return "REFRESH_STATE";
  const description = `${DirectionCode[direction]} can't be proposed: use REVERT_TO_SPECIFICATION or REFRESH_STATE`;
  throw new InvalidInput([{ field: "direction", description }]);
}

interface Request {
  direction: DirectionCode;
  /** Empty: all that can be proposed. */
  findingIds: readonly string[];
}

interface Named {
  ids: readonly string[];
  undecidedId: string | undefined;
}
