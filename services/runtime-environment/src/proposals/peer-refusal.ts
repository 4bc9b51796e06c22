import { Code, type ConnectError } from "@connectrpc/connect";

/** Whether another service's answer stays the same however often it is asked. */
export function isFinalRefusal({ code }: ConnectError): boolean {
  return refusals.has(code);
}

const refusals: ReadonlySet<Code> = new Set([Code.FailedPrecondition, Code.NotFound, Code.InvalidArgument]);
