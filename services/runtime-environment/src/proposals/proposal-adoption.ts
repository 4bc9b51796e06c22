import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type {
  AdoptionRefusal,
  ObservedValueSchema,
} from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import { callFor } from "@runtime-cloud/eventing/peer";
import { InvalidInput, Unavailable } from "@runtime-cloud/service-kit/errors";
import type { Finding, Proposal } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";
import { valueMessage } from "../inventory/json-column.ts";
import type { Look } from "../observers/observer.ts";
import { isFinalRefusal } from "./peer-refusal.ts";
import { proposalDigest } from "./proposal-digest.ts";
import type { ParameterChange } from "./proposal-preview.ts";
import type { Grouping } from "./propose.ts";

/**
 * What adopting these findings would change; nothing is declared by asking. Throws InvalidInput that names each finding
 * that no parameter of the program stands for, and Unavailable.
 */
export async function askAdoption(context: Context, place: Tenant, grouping: Grouping, look: Look) {
  const { specificationId, findings } = grouping;
  const call = callFor(place.tenantId, look.cause, look);
  const { rpc } = context.provisioning;
  try {
    const answer = await rpc.adoptObserved({ specificationId, values: valuesOf(findings), dryRun: true }, call);
    if (answer.refusals.length > 0) throw new InvalidInput(violationsOf(answer.refusals, findings));
    const { specification } = await rpc.getSpecification({ specificationId }, call);
    return { before: specification?.parameters ?? {}, after: answer.parameters ?? {} } satisfies ParameterChange;
  } catch (err) {
    if (!(err instanceof ConnectError)) throw err;
    if (isFinalRefusal(err)) throw new InvalidInput([{ field: "direction", description: cannotAdopt(err.rawMessage) }]);
    context.logger.warn({ err, specificationId }, "no answer about an adoption");
    throw new Unavailable("IaCProvisioningService doesn't say now what adopting would change: try again");
  }
}

/**
 * Declares the version that says what was reviewed, and returns its id. Throws ConnectError: FailedPrecondition when it
 * can't be declared.
 */
export async function declareAdoption(context: Context, proposal: Proposal, look: Look): Promise<string> {
  const { id, tenantId, specificationId, findingIds } = proposal;
  const findings = await context.client.finding.findMany({ where: { id: { in: findingIds } }, orderBy: { id: "asc" } });
  if (proposalDigest({ ...proposal, findings }) !== proposal.digest) {
    throw refused("what is there has moved on since it was reviewed: propose again");
  }
  const { specification, refusals } = await context.provisioning.rpc.adoptObserved(
    { specificationId, values: valuesOf(findings), idempotencyKey: `adopt-${id}` },
    callFor(tenantId, look.cause, look),
  );
  const [refusal] = refusals;
  if (refusal) throw refused(`${refusal.address} ${refusal.attribute} can't be adopted: ${refusal.reason}`);
  if (!specification) throw new ConnectError("AdoptObserved answered without a specification", Code.Internal);
  return specification.specificationId;
}

function valuesOf(findings: readonly Finding[]): MessageInitShape<typeof ObservedValueSchema>[] {
  return findings.map(({ resource, attribute, observed }) => ({
    address: resource,
    attribute,
    observed: valueMessage(observed),
  }));
}

/** How many findings an error names. */
const MAX_SHOWN = 20;

function violationsOf(refusals: readonly AdoptionRefusal[], findings: readonly Finding[]) {
  return refusals.slice(0, MAX_SHOWN).map(({ address, attribute, reason }) => {
    const finding = findings.find((each) => each.resource === address && each.attribute === attribute);
    const about = `finding ${finding?.id ?? ""} (${`${address} ${attribute}`.trim()})`;
    return { field: "findingIds", description: `${about} can't be adopted: ${reason}` };
  });
}

function cannotAdopt(reason: string): string {
  return `can't be ADOPT_OBSERVED: ${reason}`;
}

function refused(message: string): ConnectError {
  return new ConnectError(message, Code.FailedPrecondition);
}

interface Tenant {
  tenantId: string;
}
