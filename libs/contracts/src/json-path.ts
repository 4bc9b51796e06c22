import type { DescField } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";

/** The path as a caller writes it in JSON: `operations[2].holderId`, `labels["team"]`, `parameters["replicas"]`. */
export function jsonPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (step.kind === "list_sub") text += `[${step.index}]`;
    else if (step.kind === "map_sub") text += `[${JSON.stringify(String(step.key))}]`;
    else if (step.kind !== "field" || !hasNoNameInJson(step)) {
      const name = step.kind === "field" || step.kind === "extension" ? step.jsonName : step.name;
      text += text ? `.${name}` : name;
    }
  }
  return text;
}

/** Messages that are plain values in JSON. */
const plainInJson = /^google\.protobuf\.(Struct|Value|ListValue|StringValue)$/;

function hasNoNameInJson({ parent }: DescField): boolean {
  return plainInJson.test(parent.typeName);
}
