import type { ServiceImpl } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { SpecificationKind as KindCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { NotFound } from "@runtime-cloud/service-kit/errors";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { type Specification, SpecificationKind } from "../../generated/prisma/client.ts";
import { command } from "../command.ts";
import type { Context, Tx } from "../context.ts";
import { declareSpecification } from "./declare.ts";
import { definedEnumNamed } from "@runtime-cloud/service-kit/enum-named";
import { lockEnvironment } from "../environments/lock-environment.ts";
import { newestFirst, pageOf } from "../runs/newest-first.ts";
import { specificationMessage } from "./specification-message.ts";
import { withdrawSpecification } from "./withdraw-specification.ts";

const { method } = IaCProvisioningService;

export function specificationRoutes(context: Context) {
  return {
    declareSpecification: command(
      context,
      method.declareSpecification,
      async (unit, request, { tenantId, subject }) => {
        const { environmentId, programVersion, parameters = {}, reviewDestructive, releaseId = null } = request;
        const specification = await declareSpecification(context, unit, {
          tenantId,
          environmentId,
          kind: definedEnumNamed(SpecificationKind, KindCode[request.kind]),
          programVersion,
          parameters,
          reviewDestructive,
          releaseId,
          declaredBy: subject,
        });
        return { specification: specificationMessage(specification) };
      },
    ),

    withdrawSpecification: command(context, method.withdrawSpecification, async (unit, request, { tenantId }) => {
      const { environmentId } = await findSpecification(unit.tx, tenantId, request.specificationId);
      await lockEnvironment(unit.tx, tenantId, environmentId);
      const specification = await findSpecification(unit.tx, tenantId, request.specificationId);
      return { specification: specificationMessage(await withdrawSpecification(context, unit, specification)) };
    }),

    async getSpecification({ specificationId }, call) {
      const { tenantId } = principalOf(call);
      const specification = await findSpecification(context.client, tenantId, specificationId);
      return { specification: specificationMessage(specification) };
    },

    async listSpecifications(request, call) {
      const { tenantId } = principalOf(call);
      const filter = { environmentId: request.environmentId, kind: request.kind };
      const { take, orderBy, older } = newestFirst(request, filter);
      const rows = await context.client.specification.findMany({
        where: {
          tenantId,
          ...(request.environmentId !== "" && { environmentId: request.environmentId }),
          ...(request.kind !== KindCode.UNSPECIFIED && {
            kind: definedEnumNamed(SpecificationKind, KindCode[request.kind]),
          }),
          ...older,
        },
        orderBy,
        take,
      });
      const { page, nextPageToken } = pageOf(rows, take, filter);
      return { specifications: page.map(specificationMessage), nextPageToken };
    },
  } satisfies Partial<ServiceImpl<typeof IaCProvisioningService>>;
}

/** Throws NotFound, also for another tenant's. */
export async function findSpecification(
  db: Pick<Tx, "specification">,
  tenantId: string,
  id: string,
): Promise<Specification> {
  const specification = await db.specification.findFirst({ where: { id, tenantId } });
  if (!specification) throw new NotFound(`specification ${id} does not exist`);
  return specification;
}
