import type { JsonValue } from "@bufbuild/protobuf";
import type { Cause } from "@runtime-cloud/eventing/cause";
import type { DriftKind, Health, SpecificationKind } from "../../generated/prisma/client.ts";
import type { CallLimits } from "@runtime-cloud/eventing/peer";

/**
 * Somebody who can look at an environment. An environment has several; each looks on its own time, and one that fails
 * holds up no other. It has no state of its own: two looks at once don't meet.
 */
export interface Observer {
  /** Keeps its reports apart from other observers'. At most 40 characters. */
  readonly name: string;
  /**
   * Says what is there, within `look.timeoutMs` and no longer than `look.signal` lets it (see withinTime). Throws
   * ObservationFailed when it couldn't look: it never makes up an empty world. Half an answer is an Observation with a
   * `failure`. Neither text shows addresses, URLs or secrets.
   */
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
  /** At most MAX_COMPONENTS, each name once. */
  components: readonly ObservedComponent[];
  /** Why part of it couldn't be seen. Unset: all of it was. A specification has a failure of its own. */
  failure?: string;
  /**
   * Names of the components that weren't seen, or not wholly; keepUnseen says what is kept of them. Unset beside a
   * failure: it can't tell, so whatever it knew before may still be there.
   */
  unseen?: readonly string[];
}

/** How many components one observation may hold. */
export const MAX_COMPONENTS = 500;

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
  /** At most 128 characters, as is the version. */
  name: string;
  /** Empty: this observer doesn't know it. */
  componentVersion: string;
  /** Both 0 from those in COUNT_NO_REPLICAS, and no claim then. */
  replicasDesired: number;
  replicasReady: number;
  /** UNKNOWN: no claim either way. */
  health: Health;
  /** Why it isn't HEALTHY, as in `GET /healthz answered 503`: no addresses, no secrets. Unset: its replicas tell. */
  healthReason?: string | null;
  /** Where its health and version can be asked for; only the engine knows. */
  healthUrl?: string | null;
  versionUrl?: string | null;
}

/** Compares what it applied with what is there; the others see what runs. */
export const ENGINE = "engine";

/** Observers that see a component as a whole, however many replicas answer for it. */
export const COUNT_NO_REPLICAS: ReadonlySet<string> = new Set(["http"]);

/** The observer couldn't look. The message is shown to callers. */
export class ObservationFailed extends Error {
  override readonly name = "ObservationFailed";
}
