import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  LeaseOperationSchema,
  LeaseResult,
  LeaseSessionRequestSchema,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";
import type { Stage } from "./stage.ts";

/** One stream over which a dispatcher asks for leases and hears what came of it. */
export interface LeaseSession {
  /** Sends an operation, and answers the results that come for it: a second one once a wait is over. */
  send(operation: MessageInitShape<typeof LeaseOperationSchema>): AsyncIterator<LeaseResult, undefined>;
  close(): Promise<void>;
}

export function openLeaseSession({ capacity }: Stage): LeaseSession {
  const requests = channel<MessageInitShape<typeof LeaseSessionRequestSchema>>();
  const listeners = new Map<bigint, Channel<LeaseResult>>();
  let sent = 0n;
  const reading = read();

  async function read(): Promise<void> {
    for await (const { sequence, result } of capacity.leaseSession(requests.items())) {
      if (result) listeners.get(sequence)?.push(result);
    }
    for (const listener of listeners.values()) listener.end();
  }

  return {
    send(operation) {
      sent += 1n;
      const results = channel<LeaseResult>();
      listeners.set(sent, results);
      requests.push({ sequence: sent, operation });
      return results.items();
    },
    async close() {
      requests.end();
      await reading;
    },
  };
}

interface Channel<Item> {
  push(item: Item): void;
  end(): void;
  items(): AsyncGenerator<Item, undefined>;
}

/** Items that one side gives when it likes, and the other takes when they are there. */
function channel<Item>(): Channel<Item> {
  const waiting: Item[] = [];
  let ended = false;
  let wake: () => void = () => undefined;
  return {
    push(item) {
      waiting.push(item);
      wake();
    },
    end() {
      ended = true;
      wake();
    },
    async *items() {
      for (;;) {
        const item = waiting.shift();
        if (item !== undefined) yield item;
        else if (ended) return undefined;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}
