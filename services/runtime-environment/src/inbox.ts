import { EnvironmentCreatedSchema } from "@runtime-cloud/contracts/runtimecloud/events/v1/projects_pb";
import {
  ProvisioningAppliedSchema,
  ProvisioningFailedSchema,
  SpecificationDeclaredSchema,
} from "@runtime-cloud/contracts/runtimecloud/events/v1/provisioning_pb";
import { EnvironmentClass as ClassCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/projects_pb";
import { SpecificationKind as KindCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { type EventHandler, on } from "@runtime-cloud/eventing/event-handler";
import { EnvironmentClass, type Proposal, SpecificationKind } from "../generated/prisma/client.ts";
import { endRun } from "./proposals/accepted-proposal.ts";
import type { Context, ServiceUnit, Tx } from "./context.ts";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import { lockEnvironment } from "./inventory/inventory.ts";
import { lookSoon } from "./observing/schedule.ts";
import { startInventory } from "./inventory/start-inventory.ts";
import { adoptedKind, appliedKind, trackApplied, trackDeclared } from "./inventory/track-versions.ts";

/**
 * What this service does about events. One about an environment that isn't known yet is NotFound, so it is tried again
 * until its EnvironmentCreated has come.
 */
export function inboxHandlers(context: Context): EventHandler<Tx>[] {
  return [
    on(EnvironmentCreatedSchema, "StartInventory", async (unit: ServiceUnit, event) => {
      const { environmentId: id, tenantId, projectId } = event;
      // A class that this version doesn't know is treated with the most care, as IaCProvisioningService does.
      const environmentClass = enumNamed(EnvironmentClass, ClassCode[event.class]) ?? EnvironmentClass.PRODUCTION;
      await startInventory(unit, context, { id, tenantId, projectId, class: environmentClass });
    }),

    on(SpecificationDeclaredSchema, "TrackDeclared", async (unit: ServiceUnit, event) => {
      const { environmentId: id, tenantId, version, specificationId } = event;
      const inventory = await lockEnvironment(unit.tx, { id, tenantId });
      const kind = enumNamed(SpecificationKind, KindCode[event.kind]);
      if (kind) await trackDeclared(unit, inventory, { kind, version, specificationId });
    }),

    on(ProvisioningAppliedSchema, "ObserveAfterApply", async (unit: ServiceUnit, event) => {
      const { environmentId: id, tenantId, specificationVersion: version, provisioningRunId: runId } = event;
      const inventory = await lockEnvironment(unit.tx, { id, tenantId });
      if (inventory.state === "RETIRED") return;
      const proposal = await proposalOf(unit, { runId, tenantId });
      const kind = appliedKind(event.kind) ?? (proposal && (await adoptedKind(unit, proposal)));
      if (kind) await trackApplied(unit, inventory, { kind, version });
      if (proposal) await endRun(unit, context, proposal, { applied: true });
      await lookSoon(unit, context, id);
    }),

    on(ProvisioningFailedSchema, "ObserveAfterFailure", async (unit: ServiceUnit, event) => {
      const { environmentId: id, tenantId, reason, provisioningRunId: runId } = event;
      const inventory = await lockEnvironment(unit.tx, { id, tenantId });
      const proposal = await proposalOf(unit, { runId, tenantId });
      if (proposal) await endRun(unit, context, proposal, { applied: false, reason });
      if (inventory.state !== "RETIRED") await lookSoon(unit, context, id);
    }),
  ];
}

/** An accepted proposal that doesn't know its run yet learns of its end by asking: see `followUp`. */
async function proposalOf({ tx }: ServiceUnit, { runId, tenantId }: Run): Promise<Proposal | null> {
  return tx.proposal.findFirst({ where: { tenantId, provisioningRunId: runId } });
}

interface Run {
  runId: string;
  tenantId: string;
}
