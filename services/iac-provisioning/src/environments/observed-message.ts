import { fromJson, type JsonObject, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { AppliedSpecificationSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/environments_pb";
import { DriftKind } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { z } from "zod";
import type { Observed } from "../engines/engine.ts";
import { isJsonArray, isJsonObject } from "../json/canonical-json.ts";
import { jsonObject } from "../json/json-object.ts";

const json = z.json();

/** What an engine saw, as an applied specification's message has it. */
export function observedMessage({ resources, drift, outputs }: Observed) {
  return {
    resources: resources.map(({ address, resourceType, id }) => ({ address, resourceType, resourceId: id })),
    drift: drift.map(({ address, kind, attributePath, before, after }) => ({
      address,
      kind: DriftKind[kind],
      attribute: attributePath,
      applied: value(before),
      observed: value(after),
    })),
    components: components(outputs),
  } satisfies MessageInitShape<typeof AppliedSpecificationSchema>;
}

/** The `components` output: a list of objects; anything else in it is no component. */
function components(outputs: Observed["outputs"]): JsonObject[] {
  const listed = outputs.components;
  return isJsonArray(listed) ? listed.filter(isJsonObject).map(jsonObject) : [];
}

function value(of: unknown): Value {
  const plain: JsonValue = json.parse(of);
  return fromJson(ValueSchema, plain);
}
