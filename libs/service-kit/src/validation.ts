import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import type { Interceptor } from "@connectrpc/connect";
import { jsonPath } from "@runtime-cloud/contracts/events/json-path";
import { unstorableTexts } from "@runtime-cloud/contracts/events/storable-text";
import { InvalidInput } from "./errors.ts";

/**
 * Refuses request messages that break the rules in their proto, or hold text that can't be stored, after
 * authentication and before the handler; in a stream, each message as it is read. INVALID_ARGUMENT then names every
 * field that is wrong.
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
  const unstorable = unstorableTexts(schema, message).map(({ path, problem }) => ({ path, description: problem }));
  const broken = (result.violations ?? []).map(({ field, message: description }) => ({ path: field, description }));
  const violations = [...unstorable, ...broken];
  if (violations.length === 0) return;
  throw new InvalidInput(violations.map(({ path, description }) => ({ field: jsonPath(path), description })));
}
