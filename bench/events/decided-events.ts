import { type CloudEvent, envelop } from "@runtime-cloud/contracts/events/cloud-event";
import { ReconciliationDecidedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/inventory_pb";
import { ProposalState } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";

const TENANTS = 20;
const DECIDED_VERSION = 3;

/** Accepted proposals as RuntimeEnvironmentService announces them, about half a kilobyte each. */
export function decidedEvents(count: number): CloudEvent[] {
  return Array.from({ length: count }, (_, index) => {
    const proposalId = uuidv7();
    const tenantId = `tenant-${index % TENANTS}`;
    return envelop(
      ReconciliationDecidedSchema,
      { proposalId, tenantId, environmentId: uuidv7(), state: ProposalState.ACCEPTED, provisioningRunId: uuidv7() },
      {
        id: uuidv7(),
        at: systemClock.now(),
        subject: { id: proposalId, tenantId, projectId: "project-1" },
        aggregateVersion: DECIDED_VERSION,
        cause: { correlationId: uuidv7() },
      },
    );
  });
}
