import { toJson } from "@bufbuild/protobuf";
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
import { DriftKind, SpecificationKind } from "../../../generated/prisma/client.ts";
import { callFor } from "@runtime-cloud/eventing/peer";
import { enumNamed } from "@runtime-cloud/service-kit/enum-named";
import type { Provisioning } from "../../context.ts";
import { componentOutputs } from "./component-outputs.ts";
import {
  ENGINE,
  ObservationFailed,
  type ObservedDrift,
  type ObservedSpecification,
  type Observer,
} from "../observer.ts";
import { storableJson, storableText } from "../storable.ts";

/** Longest address, attribute path, id and text of a failure that is kept. */
const MAX_TEXT = 500;
const MAX_TYPE = 200;
/** Longest JSON of a drifted value that is kept whole. */
const MAX_VALUE_LENGTH = 4_000;
/** More resources, or drifted facts, than this in one specification can't be taken in. */
const MAX_FACTS = 20_000;

/**
 * Asks IaCProvisioningService to compare what is applied with what is there, by the engine that applied it. What drifted
 * is what that answer lists, no exit code and no plan of a newer version.
 */
export function engineObserver({ provisioning, clock }: { provisioning: Provisioning; clock: Clock }): Observer {
  return {
    name: ENGINE,
    async observe({ id: environmentId, tenantId }, { cause, ...limits }) {
      const at = clock.now();
      const inspected = await provisioning.rpc
        .inspectEnvironment({ environmentId }, callFor(tenantId, cause, limits))
        .catch((error: unknown) => {
          throw failureOf(error, limits.timeoutMs);
        });
      const specifications = inspected.specifications.flatMap(observedSpecification);
      const failures = specifications.flatMap(({ failure }) => failure ?? []);
      if (failures.length > 0 && failures.length === specifications.length) {
        throw new ObservationFailed(failures.join("; "));
      }
      const components = componentOutputs(
        inspected.specifications.flatMap((specification) => specification.components),
      );
      return { at, specifications, components };
    },
  };
}

/** Kinds that this version doesn't know are left to a newer one. */
function observedSpecification(applied: AppliedSpecification): ObservedSpecification[] {
  const kind = enumNamed(SpecificationKind, KindCode[applied.kind]);
  if (!kind) return [];
  const { specificationId: id, version, releaseId = null } = applied;
  const failure = failureIn(applied);
  if (failure !== null) return [{ id, kind, version, releaseId, failure, resources: [], drift: [] }];
  const resources = [...new Map(applied.resources.map(resourceEntry)).values()];
  return [{ id, kind, version, releaseId, failure, resources, drift: applied.drift.flatMap(observedDrift) }];
}

/** A part of too long an answer would make the rest look gone. */
function failureIn({ failure, resources, drift }: AppliedSpecification): string | null {
  if (failure !== undefined) return storableText(failure, MAX_TEXT);
  if (resources.length > MAX_FACTS) return `it has more than ${MAX_FACTS} resources, which is too many to take in`;
  return drift.length > MAX_FACTS ? `it has more than ${MAX_FACTS} drifted facts, which is too many to take in` : null;
}

function resourceEntry({ address, resourceType, resourceId }: ResourceMessage) {
  const resource = {
    address: storableText(address, MAX_TEXT),
    resourceType: storableText(resourceType, MAX_TYPE),
    resourceId: resourceId === undefined ? null : storableText(resourceId, MAX_TEXT),
  };
  return [resource.address, resource] as const;
}

function observedDrift({ address, attribute, kind: code, applied, observed }: Drift): ObservedDrift[] {
  const kind = enumNamed(DriftKind, DriftKindCode[code]);
  if (!kind) return [];
  const at = { resource: storableText(address, MAX_TEXT), attribute: storableText(attribute, MAX_TEXT) };
  return [{ ...at, kind, declared: jsonOf(applied), observed: jsonOf(observed) }];
}

function jsonOf(value: Value | undefined) {
  return value?.kind.case === undefined ? null : storableJson(toJson(ValueSchema, value), MAX_VALUE_LENGTH);
}

function failureOf(error: unknown, timeoutMs: number): unknown {
  if (!(error instanceof ConnectError)) return error;
  return new ObservationFailed(`IaCProvisioningService: ${textOf(error, timeoutMs)}`, { cause: error });
}

/** Texts of the transport hold addresses, those of the service don't. */
function textOf({ code, rawMessage }: ConnectError, timeoutMs: number): string {
  if (code === Code.Unauthenticated) return "it doesn't accept this service's token";
  if (code === Code.DeadlineExceeded) return `no answer within ${timeoutMs / 1_000} s`;
  return storableText(rawMessage.replaceAll(IP_ADDRESS, "its address"), MAX_TEXT);
}

const IP_ADDRESS = /\[[0-9a-f:.]+\](?::\d+)?|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?/gi;
