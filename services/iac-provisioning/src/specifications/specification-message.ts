import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { SpecificationSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/specifications_pb";
import { SpecificationKind, SpecificationState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { Specification } from "../../generated/prisma/client.ts";
import { jsonObject } from "../json/json-object.ts";

export function specificationMessage(specification: Specification): MessageInitShape<typeof SpecificationSchema> {
  return {
    specificationId: specification.id,
    tenantId: specification.tenantId,
    projectId: specification.projectId,
    environmentId: specification.environmentId,
    kind: SpecificationKind[specification.kind],
    version: specification.specificationVersion,
    state: SpecificationState[specification.state],
    programVersion: specification.programVersion,
    parameters: jsonObject(specification.parameters),
    contentDigest: specification.contentDigest,
    reviewDestructive: specification.reviewDestructive,
    releaseId: specification.releaseId ?? undefined,
    declaredBy: specification.declaredBy,
    declaredAt: timestampFromDate(specification.declaredAt),
  };
}
