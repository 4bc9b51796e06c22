import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import type { Interceptor } from "@connectrpc/connect";
import { InvalidInput } from "./errors.ts";

/**
 * Refuses request messages that break the rules in their proto, after authentication and before the handler; in a
 * stream, each message as it is read. INVALID_ARGUMENT then names every field that is wrong.
 */
export function validateRequests(): Interceptor {
  const validator = createValidator();
  return (next) => async (request) => {
    const { input } = request.method;
    if (!request.stream) {
      refuseInvalid(validator, input, request.message);
      return next(request);
    }
    const { message: messages } = request;
    async function* checked() {
      for await (const message of messages) {
        refuseInvalid(validator, input, message);
        yield message;
      }
    }
    return next({ ...request, message: checked() });
  };
}

function refuseInvalid<Desc extends DescMessage>(
  validator: Validator,
  schema: Desc,
  message: MessageShape<Desc>,
): void {
  const result = validator.validate(schema, message);
  if (result.kind === "error") throw result.error;
  if (result.kind === "valid") return;
  throw new InvalidInput(
    result.violations.map(({ field, message: description }) => ({ field: jsonPath(field), description })),
  );
}

/** The path as a caller writes it in JSON: `operations[2].holderId`, `labels["team"]`. */
function jsonPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (step.kind === "list_sub") text += `[${step.index}]`;
    else if (step.kind === "map_sub") text += `[${JSON.stringify(String(step.key))}]`;
    else {
      const name = step.kind === "field" || step.kind === "extension" ? step.jsonName : step.name;
      text += text ? `.${name}` : name;
    }
  }
  return text;
}
