import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import type { Finding, Prisma, ReconciliationDirection } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";
import { isReconcilable } from "../findings/finding-reconcilable.ts";
import { undecidedProposal } from "./proposal-transitions.ts";
import type { Grouping } from "./propose.ts";

/** The most findings that one proposal covers: its run closes the others of its specification as well. */
export const MAX_FINDINGS = 1_000;

/** What a run can put right, and was there at the last look. */
export const proposable = {
  kind: { not: "HEALTH_DEGRADED" },
  vanishedAt: null,
} as const satisfies Prisma.FindingWhereInput;

/** What a request asks to be proposed. Throws InvalidInput when its findings aren't those of one specification. */
export async function groupFindings(tx: Tx, environmentId: string, request: Request): Promise<Grouping> {
  const { direction, findingIds } = request;
  const undecided = await undecidedProposal({ tx }, environmentId);
  const findings =
    findingIds.length > 0
      ? await namedFindings(tx, environmentId, { ids: findingIds, undecidedId: undecided?.id })
      : await proposableFindings(tx, environmentId, undecided?.id);
  return { direction, findings, undecided, specificationId: oneSpecification(environmentId, findings) };
}

/** OPEN findings, and those that the undecided proposal covers, oldest first. */
async function proposableFindings(tx: Tx, environmentId: string, undecidedId: string | undefined) {
  const covered = undecidedId === undefined ? [] : [{ state: "PROPOSED" as const, proposalId: undecidedId }];
  return tx.finding.findMany({
    where: { environmentId, ...proposable, OR: [{ state: "OPEN" }, ...covered] },
    orderBy: { id: "asc" },
    take: MAX_FINDINGS,
  });
}

async function namedFindings(tx: Tx, environmentId: string, { ids, undecidedId }: Named) {
  const found = await tx.finding.findMany({
    where: { environmentId, id: { in: ids.filter((id) => UUID.test(id)) } },
    orderBy: { id: "asc" },
  });
  const byId = new Map(found.map((finding) => [finding.id, finding]));
  const violations = ids.flatMap((id, index) => {
    const finding = byId.get(id);
    const description = finding
      ? whyNotProposable(finding, undecidedId)
      : `is no finding of environment ${environmentId}: ListFindings has its ids`;
    return description === undefined ? [] : [{ field: `findingIds[${index}]`, description }];
  });
  if (violations.length > 0) throw new InvalidInput(violations.slice(0, MAX_SHOWN));
  return found;
}

function whyNotProposable(finding: Finding, undecidedId: string | undefined): string | undefined {
  const { state, kind, vanishedAt, proposalId } = finding;
  const isOurs = state === "OPEN" || (state === "PROPOSED" && proposalId === undecidedId);
  if (!isOurs) return `is ${state}: only an OPEN finding can be proposed`;
  if (!isReconcilable(kind)) return `is ${kind}, which no run puts right: see to the component, or suppress it`;
  return vanishedAt ? "was not there at the last look: it ends by itself if it stays away" : undefined;
}

function oneSpecification(environmentId: string, findings: readonly Finding[]): string {
  const [specificationId, ...others] = new Set(findings.map((finding) => finding.specificationId));
  if (specificationId === undefined) {
    const description = `has no open finding that a run could put right: ListFindings has those of environment ${environmentId}`;
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

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** How many findings, of each specification, an error names. */
const MAX_SHOWN = 20;

interface Request {
  direction: ReconciliationDirection;
  /** Empty: all that can be proposed. */
  findingIds: readonly string[];
}

interface Named {
  ids: readonly string[];
  undecidedId: string | undefined;
}
