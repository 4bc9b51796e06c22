import { ReconciliationDirection as DirectionCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { definedEnumNamed } from "@runtime-cloud/service-kit/enum-named";
import { StaleRow } from "@runtime-cloud/service-kit/errors";
import { type Proposal, ReconciliationDirection } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { groupFindings } from "./group-findings.ts";
import { lockEnvironment, refuseRetired, unknownEnvironment } from "../inventory/inventory.ts";
import type { Look, Place } from "../observers/observer.ts";
import { askAdoption } from "./proposal-adoption.ts";
import { proposalDigest } from "./proposal-digest.ts";
import { adoptionPreview, type PreviewContents } from "./proposal-preview.ts";
import { type Grouping, propose } from "./propose.ts";

/** What adopting would change, asked before anything is locked, and of which drifted facts it was asked. */
export interface AskedAdoption {
  about: string;
  preview: PreviewContents;
}

/** For ADOPT_OBSERVED; undefined for what can be proposed without asking. Throws what `askAdoption` throws. */
export async function adoptionFor(context: Context, place: Place, request: Request, look: Look) {
  const { client } = context;
  const direction = directionOf(request);
  if (direction !== "ADOPT_OBSERVED") return undefined;
  const inventory = await client.inventory.findFirst({ where: place });
  if (!inventory) throw unknownEnvironment(place.id);
  const grouping = await groupFindings(client, place.id, { ...request, direction });
  const preview = adoptionPreview(await askAdoption(context, place, grouping, look));
  return { about: factsOf(grouping), preview } satisfies AskedAdoption;
}

/** Makes the proposal that a request asks for. */
export async function requestProposal(
  unit: ServiceUnit,
  context: Context,
  place: Place,
  { request, adoption }: { request: Request; adoption: AskedAdoption | undefined },
): Promise<Proposal> {
  const inventory = await lockEnvironment(unit.tx, place);
  refuseRetired(inventory, "propose");
  const grouping = await groupFindings(unit.tx, place.id, { ...request, direction: directionOf(request) });
  refuseMoved(grouping, adoption);
  return propose(unit, context, inventory, { ...grouping, preview: adoption?.preview });
}

/** Throws StaleRow when other drift is to be adopted than was asked about. */
function refuseMoved(grouping: Grouping, adoption: AskedAdoption | undefined): void {
  if (!adoption || adoption.about === factsOf(grouping)) return;
  throw new StaleRow("what is there has moved on while it was asked whether it can be adopted: propose again");
}

export function factsOf(grouping: Grouping): string {
  return proposalDigest({ ...grouping, planDigest: null });
}

function directionOf({ direction }: Request): ReconciliationDirection {
  return definedEnumNamed(ReconciliationDirection, DirectionCode[direction]);
}

interface Request {
  direction: DirectionCode;
  /** Empty: all that can be proposed. */
  findingIds: readonly string[];
}
