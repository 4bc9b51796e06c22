import type { JsonValue } from "@bufbuild/protobuf";
import type { Cause } from "@runtime-cloud/eventing/cause";
import type { DriftKind, Health, SpecificationKind } from "../../generated/prisma/client.ts";
import type { CallLimits } from "@runtime-cloud/eventing/peer";

/** Somebody who can look at an environment. */
export interface Observer {
  /** Keeps its reports apart from other observers'. At most 40 characters. */
  readonly name: string;
  /** Says what is there. Throws when it couldn't look: it never makes up an empty world. */
  observe(environment: Place, look: Look): Promise<Observation>;
}

export interface Place {
  id: string;
  tenantId: string;
}

/** Why somebody looks, and how long it may take. */
export type Look = CallLimits & { cause: Cause };

export interface Observation {
  /** When looking began: whatever happened later may be missing. */
  at: Date;
  /** One for each kind of specification that is applied. Unset: this observer doesn't know specifications. */
  specifications?: readonly ObservedSpecification[];
  components: readonly ObservedComponent[];
}

export interface ObservedSpecification {
  id: string;
  kind: SpecificationKind;
  version: number;
  releaseId: string | null;
  /** Why it couldn't be inspected: resources and drift are empty then and say nothing. */
  failure: string | null;
  resources: readonly ObservedResource[];
  drift: readonly ObservedDrift[];
}

export interface ObservedResource {
  address: string;
  resourceType: string;
  resourceId: string | null;
}

/** One fact that differs from what was applied. Sensitive values are masked. */
export interface ObservedDrift {
  /** Address of the resource. */
  resource: string;
  kind: DriftKind;
  /** Path inside the resource; empty for the whole. */
  attribute: string;
  declared: JsonValue;
  observed: JsonValue;
}

export interface ObservedComponent {
  name: string;
  componentVersion: string;
  replicasDesired: number;
  replicasReady: number;
  health: Health;
}

/** The observer couldn't look. The message is shown to callers. */
export class ObservationFailed extends Error {
  override readonly name = "ObservationFailed";
}
