import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import { EnvironmentClass } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import type { Stage } from "@runtime-cloud/runtime-cloud-host/story/stage";

/** Announces a new environment as the Control Plane does; answers its id. */
export async function announceEnvironment({ controlPlane, tenantId, projectId, newId }: Stage): Promise<string> {
  const environmentId = newId();
  await controlPlane.announce(
    EnvironmentCreatedSchema,
    { id: environmentId, tenantId, projectId },
    { environmentId, tenantId, projectId, class: EnvironmentClass.TEST },
  );
  return environmentId;
}
