import { create } from "@bufbuild/protobuf";
import {
  type AppliedSpecification,
  AppliedSpecificationSchema,
} from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";

/** An applied specification of very many resources, some of which become others. */
export interface ManyResources {
  /** As an inspection finds it. */
  applied(): AppliedSpecification;
  /** Makes so many of the resources others, at the same addresses. */
  move(count: number): void;
}

export function manyResources(count: number): ManyResources {
  const resources = Array.from({ length: count }, (_, index) => ({
    address: `module.part[${index}].terraform_data.app`,
    resourceType: "terraform_data",
    resourceId: `app-${index}`,
  }));
  const specification = create(AppliedSpecificationSchema, {
    specificationId: uuidv7(),
    kind: SpecificationKind.RELEASE,
    version: 1,
    resources,
    components: [{ name: "api", version: "1.4.0", replicas: 2 }],
  });
  return {
    applied: () => specification,
    move(some) {
      for (const resource of specification.resources.slice(0, some)) resource.resourceId = `app-${uuidv7()}`;
    },
  };
}
