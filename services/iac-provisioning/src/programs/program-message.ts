import { fromJson, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate, type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type {
  ProgramParameterSchema,
  ProgramSchema,
} from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/programs_pb";
import { SENSITIVE } from "../engines/engine-event.ts";
import type { ParameterDeclaration } from "./program.ts";
import type { ProgramContent } from "./program-content.ts";
import type { Publication } from "./published-programs.ts";

/** `publication` for a tenant's own; a program without one came with the installation. */
export function programMessage(
  programVersion: string,
  { digest, engine, description, parameters }: ProgramContent,
  publication?: Publication,
): MessageInitShape<typeof ProgramSchema> {
  return {
    programVersion,
    digest,
    engine,
    description,
    parameters: Object.entries(parameters)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, declaration]) => parameterMessage(name, declaration)),
    installed: publication === undefined,
    ...(publication && {
      publishedBy: publication.publishedBy,
      publishedAt: timestampFromDate(publication.publishedAt),
    }),
  };
}

function parameterMessage(
  name: string,
  { type, description, required, sensitive, default: value }: ParameterDeclaration,
): MessageInitShape<typeof ProgramParameterSchema> {
  const shown = sensitive ? SENSITIVE : value;
  return {
    name,
    type,
    description,
    required,
    sensitive,
    ...(value !== undefined && shown !== undefined && { defaultValue: valueMessage(shown) }),
  };
}

function valueMessage(value: Parameters<typeof fromJson>[1]): Value {
  return fromJson(ValueSchema, value);
}
