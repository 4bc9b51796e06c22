import { create, type MessageShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { AdoptObservedResponseSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { callCause } from "@runtime-cloud/eventing/cause";
import { once } from "@runtime-cloud/eventing/idempotency";
import { unitOfWork } from "@runtime-cloud/eventing/unit-of-work";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { type Adopted, whatToAdopt } from "./adoption.ts";
import type { Context, ServiceUnit } from "../context.ts";
import { declareSpecification } from "../specifications/declare.ts";
import { resolveDesiredState } from "../specifications/desired-state.ts";
import { SENSITIVE } from "../engines/engine-event.ts";
import { jsonObject } from "../json/json-object.ts";
import { lockEnvironment } from "./lock-environment.ts";
import { withinCall } from "./look-as-applied.ts";
import { maskParameters } from "../programs/program-parameters.ts";
import { specificationMessage } from "../specifications/specification-message.ts";
import { findSpecification } from "../specifications/specifications.ts";

const { method } = IaCProvisioningService;

/** AdoptObserved: its engine says what to declare; that is declared as DeclareSpecification would. */
export function adoptionRoutes(context: Context) {
  return {
    async adoptObserved(request, call) {
      const { tenantId, subject: declaredBy } = principalOf(call);
      const specification = await findSpecification(context.client, tenantId, request.specificationId);
      const adopting = withinCall(call, (signals) => whatToAdopt(context, specification, request.values, signals));
      // No transaction waits for an engine; and a repeat gets its answer, whatever has become of the specification.
      await Promise.allSettled([adopting]);
      return unitOfWork(context, callCause(call, context.newId), (unit) =>
        once(unit, { tenantId, method: method.adoptObserved, request }, async () => {
          const adopted = await adopting;
          if (adopted.refusals.length > 0) return answer(adopted);
          await refuseBehindNewer(context, unit, adopted);
          if (request.dryRun) return answer(adopted);
          const declared = await declareSpecification(context, unit, { ...declarationOf(adopted), declaredBy });
          return answer(adopted, { specification: specificationMessage(declared) });
        }),
      );
    },
  } satisfies Partial<ServiceImpl<typeof IaCProvisioningService>>;
}

function answer(
  { program, changed, refusals }: Adopted,
  declared: { specification?: ReturnType<typeof specificationMessage> } = {},
): MessageShape<typeof AdoptObservedResponseSchema> {
  return create(AdoptObservedResponseSchema, {
    ...declared,
    parameters: jsonObject(maskParameters(program, changed, SENSITIVE)),
    refusals: refusals.map(({ address, attributePath, reason }) => ({ address, attribute: attributePath, reason })),
  });
}

/** What the adopted specification says, but for the parameters that change. */
function declarationOf({ specification, parameters }: Adopted) {
  const { tenantId, environmentId, kind, programVersion, reviewDestructive, releaseId } = specification;
  return { tenantId, environmentId, kind, programVersion, parameters, reviewDestructive, releaseId };
}

/**
 * A newer version says what somebody wants that was not applied yet, or has been applied meanwhile: neither is to be
 * superseded by what an older one makes of the world. One that says just this is the one to return.
 */
async function refuseBehindNewer(context: Context, unit: ServiceUnit, adopted: Adopted): Promise<void> {
  const { tenantId, environmentId, kind, id, specificationVersion, programVersion } = adopted.specification;
  await lockEnvironment(unit.tx, tenantId, environmentId);
  const newest = await unit.tx.specification.findFirst({
    where: { environmentId, kind, state: { in: ["DECLARED", "APPLIED"] } },
    orderBy: { specificationVersion: "desc" },
  });
  const wanted = { tenantId, programVersion, parameters: adopted.parameters };
  const { contentDigest } = await resolveDesiredState(context, unit.tx, wanted);
  if (newest?.id === id || newest?.contentDigest === contentDigest) return;
  const there = newest ? `version ${newest.specificationVersion} is ${newest.state}` : "it is in force no more";
  const wayOut = newest?.state === "DECLARED" ? "apply or withdraw that first" : "adopt what differs from that";
  const description = `is version ${specificationVersion}, and ${there}: ${wayOut}`;
  throw new InvalidInput([{ field: "specificationId", description }]);
}
