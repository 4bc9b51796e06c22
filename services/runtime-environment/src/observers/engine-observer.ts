import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type {
  AppliedSpecification,
  Drift,
  ObservedResource as ResourceMessage,
} from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import { DriftKind as DriftKindCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { SpecificationKind as KindCode } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import type { Clock } from "@runtime-cloud/service-kit/clock";
import { DriftKind, SpecificationKind } from "../../generated/prisma/client.ts";
import { callFor } from "@runtime-cloud/eventing/peer";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import type { Provisioning } from "../context.ts";
import { componentOutputs } from "./component-outputs.ts";
import { ObservationFailed, type ObservedDrift, type ObservedSpecification, type Observer } from "./observer.ts";

/** Longest address, attribute path and id that is kept. */
const MAX_TEXT = 500;
/** Longest JSON of a drifted value that is kept whole. */
const MAX_VALUE_LENGTH = 4_000;

/** Asks IaCProvisioningService to compare what is applied with what is there, by the engine that applied it. */
export function engineObserver({ provisioning, clock }: { provisioning: Provisioning; clock: Clock }): Observer {
  return {
    name: "engine",
    async observe({ id: environmentId, tenantId }, { cause, ...limits }) {
      const at = clock.now();
      const inspected = await provisioning.rpc
        .inspectEnvironment({ environmentId }, callFor(tenantId, cause, limits))
        .catch((error: unknown) => {
          throw failureOf(error);
        });
      const specifications = inspected.specifications.flatMap(observedSpecification);
      const failures = specifications.flatMap(({ failure }) => failure ?? []);
      if (failures.length > 0 && failures.length === specifications.length) {
        throw new ObservationFailed(failures.join("; "));
      }
      const components = inspected.specifications.flatMap((specification) =>
        componentOutputs(specification.components),
      );
      return { at, specifications, components };
    },
  };
}

/** Kinds that this version doesn't know are left to a newer one. */
function observedSpecification(applied: AppliedSpecification): ObservedSpecification[] {
  const kind = enumNamed(SpecificationKind, KindCode[applied.kind]);
  if (!kind) return [];
  const { specificationId: id, version, releaseId = null, failure = null } = applied;
  const resources = [...new Map(applied.resources.map(resourceEntry)).values()];
  return [{ id, kind, version, releaseId, failure, resources, drift: applied.drift.flatMap(observedDrift) }];
}

function resourceEntry({ address, resourceType, resourceId }: ResourceMessage) {
  const resource = {
    address: clip(address),
    resourceType,
    resourceId: resourceId === undefined ? null : clip(resourceId),
  };
  return [resource.address, resource] as const;
}

function observedDrift({ address, attribute, kind: code, applied, observed }: Drift): ObservedDrift[] {
  const kind = enumNamed(DriftKind, DriftKindCode[code]);
  if (!kind) return [];
  const values = { declared: jsonOf(applied), observed: jsonOf(observed) };
  return [{ resource: clip(address), attribute: clip(attribute), kind, ...values }];
}

function jsonOf(value: Value | undefined): JsonValue {
  if (value?.kind.case === undefined) return null;
  const json = toJson(ValueSchema, value);
  const text = JSON.stringify(json);
  return text.length <= MAX_VALUE_LENGTH ? json : `${text.slice(0, MAX_VALUE_LENGTH)}…`;
}

function clip(text: string): string {
  return text.slice(0, MAX_TEXT);
}

function failureOf(error: unknown): unknown {
  if (!(error instanceof ConnectError)) return error;
  const text = error.code === Code.Unauthenticated ? "it doesn't accept this service's token" : error.rawMessage;
  return new ObservationFailed(`IaCProvisioningService: ${text}`, { cause: error });
}
