import { SpecificationKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { setup, type StateValueFrom } from "xstate";
import { announcing } from "./announce.ts";
import type { EnumName } from "./enum-name.ts";
import type { IntegrationEvent } from "./integration-event.ts";

export interface SpecificationColumns {
  id: string;
  tenantId: string;
  environmentId: string;
  kind: EnumName<typeof SpecificationKind>;
  specificationVersion: number;
  programVersion: string;
  appliedAt: Date | null;
}

export type SpecificationEvent =
  { type: "apply"; at: Date } | { type: "supersede" } | { type: "withdraw" } | { type: "remove" };

const specification = setup({
  types: {
    context: {} as SpecificationColumns,
    input: {} as SpecificationColumns,
    events: {} as SpecificationEvent,
    emitted: {} as IntegrationEvent,
  },
});

const announceDeclared = announcing(
  "SpecificationDeclared",
  specification.emit(({ context }) => ({
    type: "SpecificationDeclared",
    specificationId: context.id,
    tenantId: context.tenantId,
    environmentId: context.environmentId,
    kind: SpecificationKind[context.kind],
    version: context.specificationVersion,
    programVersion: context.programVersion,
  })),
);
const recordApply = specification.assign({
  appliedAt: ({ context, event }) => (event.type === "apply" ? event.at : context.appliedAt),
});

/** A numbered, immutable desired state; its content never changes, only where it stands. */
export const deploymentSpecification = specification.createMachine({
  id: "DeploymentSpecification",
  context: ({ input }) => input,
  initial: "DECLARED",
  states: {
    DECLARED: {
      description: "Wanted and not yet there; a provisioning run applies it.",
      entry: announceDeclared,
      on: {
        apply: { target: "APPLIED", actions: recordApply },
        supersede: "SUPERSEDED",
        withdraw: "WITHDRAWN",
      },
    },
    APPLIED: {
      description: "In force; nobody has to act until a newer version is applied or drift is found.",
      on: {
        apply: { actions: recordApply },
        supersede: "SUPERSEDED",
        remove: "WITHDRAWN",
      },
    },
    SUPERSEDED: { type: "final", description: "A newer version of the same kind took its place." },
    WITHDRAWN: { type: "final", description: "Taken back before it was applied, or torn down afterwards." },
  },
});
export type SpecificationState = StateValueFrom<typeof deploymentSpecification>;
