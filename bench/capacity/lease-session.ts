import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import type {
  LeaseOperationSchema,
  LeaseResult,
  LeaseSessionRequestSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";

/** One LeaseSession that many callers share. */
export interface LeaseSession {
  /** Settles with the first result that carries the operation's sequence; rejects once the stream has ended. */
  submit(operation: MessageInitShape<typeof LeaseOperationSchema>): Promise<LeaseResult["result"]>;
  close(): Promise<void>;
}

type SessionRequest = MessageInitShape<typeof LeaseSessionRequestSchema>;

interface Waiting {
  resolve(result: LeaseResult["result"]): void;
  reject(reason: unknown): void;
}

export function openLeaseSession(client: Client<typeof ExecutionCapacityService>): LeaseSession {
  const outgoing: SessionRequest[] = [];
  const waiting = new Map<bigint, Waiting>();
  let wake: () => void = () => undefined;
  let closed = false;
  let ended: Error | undefined;
  let lastSequence = 0n;

  async function* requests(): AsyncGenerator<SessionRequest> {
    while (!closed) {
      for (const request of outgoing.splice(0)) yield request;
      if (outgoing.length === 0 && !closed) await new Promise<void>((resolve) => (wake = resolve));
    }
  }

  async function receive(): Promise<void> {
    for await (const { sequence, result } of client.leaseSession(requests())) {
      waiting.get(sequence)?.resolve(result?.result ?? { case: undefined });
      waiting.delete(sequence);
    }
  }

  const received = receive()
    .catch((error: unknown) => error)
    .then((error) => {
      ended = error instanceof Error ? error : new Error("the session has ended");
      for (const { reject } of waiting.values()) reject(ended);
    });

  return {
    submit(operation) {
      const sequence = (lastSequence += 1n);
      return new Promise((resolve, reject) => {
        if (ended) return reject(ended);
        waiting.set(sequence, { resolve, reject });
        outgoing.push({ sequence, operation });
        wake();
      });
    },
    async close() {
      closed = true;
      wake();
      await received;
    },
  };
}
