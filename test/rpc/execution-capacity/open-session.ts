import type { LeaseResult } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import type { CapacityClient } from "../../_support/execution-capacity.ts";

type Request = Parameters<CapacityClient["leaseSession"]>[0] extends AsyncIterable<infer Message> ? Message : never;
export type Operation = NonNullable<Request["operation"]>;

export interface OpenSession {
  /** Sends an operation and answers its sequence. */
  send(operation?: Operation): bigint;
  /** The next results, in the order in which they come. */
  next(count: number): Promise<{ sequence: bigint; result: LeaseResult | undefined }[]>;
  /** Closes the caller's side. */
  close(): void;
  cancel(): void;
  /** The results that are left, until the session ends. */
  rest(): Promise<{ sequence: bigint; result: LeaseResult | undefined }[]>;
}

/** A session as a caller holds it open. */
export function openSession(client: CapacityClient): OpenSession {
  const requests: Request[] = [];
  const stop = new AbortController();
  let closed = false;
  let wake: (() => void) | undefined;
  async function* sent(): AsyncGenerator<Request> {
    while (!closed || requests.length > 0) {
      const request = requests.shift();
      if (request) yield request;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  }
  const results = client.leaseSession(sent(), { signal: stop.signal })[Symbol.asyncIterator]();
  let sequence = 0n;

  async function next(count: number) {
    const received: Awaited<ReturnType<OpenSession["next"]>> = [];
    while (received.length < count) {
      const step = await results.next();
      if (step.done) break;
      received.push({ sequence: step.value.sequence, result: step.value.result });
    }
    return received;
  }

  return {
    send(operation) {
      sequence += 1n;
      requests.push({ sequence, ...(operation && { operation }) });
      wake?.();
      return sequence;
    },
    next,
    close() {
      closed = true;
      wake?.();
    },
    cancel: () => stop.abort(),
    rest: () => next(Infinity),
  };
}
