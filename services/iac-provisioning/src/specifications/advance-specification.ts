import { commit } from "@runtime-cloud/eventing/commit";
import { accept } from "@runtime-cloud/eventing/decision";
import {
  deploymentSpecification,
  type SpecificationEvent,
} from "@runtime-cloud/state-machines/deployment-specification";
import type { Specification } from "../../generated/prisma/client.ts";
import type { ServiceUnit } from "../context.ts";

/** Sends a specification's machine an event and writes what comes of it. Throws IllegalTransition. */
export function advanceSpecification(
  unit: ServiceUnit,
  specification: Specification,
  event: SpecificationEvent,
): Promise<Specification> {
  const { id, version } = specification;
  return commit(unit, accept(deploymentSpecification, specification, event), (columns) =>
    unit.tx.specification.update({ where: { id, version }, data: { ...columns, version: { increment: 1 } } }),
  );
}
