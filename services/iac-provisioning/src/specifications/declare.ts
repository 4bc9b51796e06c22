import { commit } from "@runtime-cloud/eventing/commit";
import { begin } from "@runtime-cloud/eventing/decision";
import { deploymentSpecification } from "@runtime-cloud/state-machines/deployment-specification";
import type { Environment, Specification, SpecificationKind } from "../../generated/prisma/client.ts";
import type { Context, ServiceUnit, Tx } from "../context.ts";
import { type DesiredState, resolveDesiredState, sealParameters } from "./desired-state.ts";
import { SENSITIVE } from "../engines/engine-event.ts";
import { lockEnvironment } from "../environments/lock-environment.ts";
import type { JsonObject } from "../json/canonical-json.ts";
import { maskParameters } from "../programs/program-parameters.ts";
import { isBeingApplied, supersededBy, supersedeSpecification } from "./supersede-specification.ts";

export interface Declaration {
  tenantId: string;
  environmentId: string;
  kind: SpecificationKind;
  programVersion: string;
  parameters: JsonObject;
  reviewDestructive: boolean;
  releaseId: string | null;
  declaredBy: string;
}

/**
 * Declares the next version of an environment's desired state, which supersedes those that were declared and never
 * applied. The newest version is returned again when it says the same. Throws InvalidInput and NotFound.
 */
export async function declareSpecification(
  context: Context,
  unit: ServiceUnit,
  declaration: Declaration,
): Promise<Specification> {
  const { tenantId, programVersion, parameters } = declaration;
  const desired = await resolveDesiredState(context, unit.tx, { tenantId, programVersion, parameters });
  const environment = await lockEnvironment(unit.tx, tenantId, declaration.environmentId);
  const versions = { environmentId: environment.id, kind: declaration.kind };
  const newest = await unit.tx.specification.findFirst({
    where: { ...versions, state: { in: ["DECLARED", "APPLIED"] } },
    orderBy: { specificationVersion: "desc" },
  });
  if (newest && saysTheSame(newest, declaration, desired)) return newest;

  const row = {
    ...versions,
    ...describe(declaration, desired, environment),
    id: unit.newId(),
    specificationVersion: await nextVersion(unit.tx, versions),
    declaredAt: unit.at,
    appliedAt: null,
  };
  const sealedParameters = sealParameters(context, row.id, desired.parameters);
  const declared = await commit(unit, begin(deploymentSpecification, row), ({ state }) =>
    unit.tx.specification.create({ data: { ...row, sealedParameters, state } }),
  );
  await supersedeOlder(context, unit, declared);
  return declared;
}

/** Another release, or another demand for review, is another version though its content is the same. */
function saysTheSame(newest: Specification, declaration: Declaration, { contentDigest }: DesiredState): boolean {
  return (
    newest.contentDigest === contentDigest &&
    newest.releaseId === declaration.releaseId &&
    newest.reviewDestructive === declaration.reviewDestructive
  );
}

function describe(
  declaration: Declaration,
  { program, parameters, contentDigest }: DesiredState,
  { projectId }: Environment,
) {
  const { tenantId, programVersion, reviewDestructive, releaseId, declaredBy } = declaration;
  return {
    tenantId,
    projectId,
    programVersion,
    programDigest: program.digest,
    parameters: maskParameters(program, parameters, SENSITIVE),
    contentDigest,
    reviewDestructive,
    releaseId,
    declaredBy,
  };
}

async function nextVersion(tx: Tx, versions: Pick<Specification, "environmentId" | "kind">): Promise<number> {
  const { _max } = await tx.specification.aggregate({ where: versions, _max: { specificationVersion: true } });
  return (_max.specificationVersion ?? 0) + 1;
}

async function supersedeOlder(context: Context, unit: ServiceUnit, declared: Specification): Promise<void> {
  const { id, environmentId, kind } = declared;
  const older = await unit.tx.specification.findMany({
    where: { environmentId, kind, state: "DECLARED", id: { not: id } },
  });
  for (const specification of older) {
    if (await isBeingApplied(unit.tx, specification.id)) continue;
    await supersedeSpecification(context, unit, specification, supersededBy(declared));
  }
}
