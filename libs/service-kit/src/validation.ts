import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import type { Interceptor, StreamRequest } from "@connectrpc/connect";
import { isCheckable } from "@runtime-cloud/contracts/events/ignored-fields";
import { jsonPath } from "@runtime-cloud/contracts/events/json-path";
import { unstorableTexts } from "@runtime-cloud/contracts/events/storable-text";
import { type FieldViolation, InvalidInput } from "./errors.ts";

/**
 * Refuses request messages that break the rules in their proto, or hold text that can't be stored, after
 * authentication and before the handler; in a stream, each message as it is read. INVALID_ARGUMENT then names every
 * field that is wrong. What a field with `ignore = IGNORE_ALWAYS` holds is for the handler to check.
 */
export function validateRequests(): Interceptor {
  return (next) => async (request) => {
    if (request.stream) return next(checkedStream(request));
    refuseInvalid(request.method.input, request.message);
    return next(request);
  };
}

/** Throws InvalidInput for a message that has {@link requestProblems}. */
export function refuseInvalid<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): void {
  const problems = requestProblems(schema, message);
  if (problems.length > 0) throw new InvalidInput(problems);
}

/** Every field of a message that breaks the rules in its proto, or holds text that can't be stored; none: it is good. */
export function requestProblems<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): FieldViolation[] {
  const result = validator.validate(schema, message);
  if (result.kind === "error") throw result.error;
  const unstorable = unstorableTexts(schema, message).map(({ path, problem }) => ({ path, description: problem }));
  const broken = (result.violations ?? []).map(({ field, message: description }) => ({ path: field, description }));
  return [...unstorable, ...broken].map(({ path, description }) => ({ field: jsonPath(path), description }));
}

/** It compiles the rules of each kind of message once. */
const validator = createValidator();

/** A stream whose messages can't be wrong is passed on as it is: each step on its way costs every message. */
function checkedStream(request: StreamRequest): StreamRequest {
  const { input } = request.method;
  if (!isCheckable(input)) return request;
  const { message: messages } = request;
  async function* checked() {
    for await (const message of messages) {
      refuseInvalid(input, message);
      yield message;
    }
  }
  return { ...request, message: checked() };
}
