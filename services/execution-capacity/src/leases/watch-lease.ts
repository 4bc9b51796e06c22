import type { ServiceImpl } from "@connectrpc/connect";
import type { ExecutionCapacityService } from "@runtime-cloud/contracts/runtimecloud/capacity/v1/execution_capacity_service_pb";
import { watcherLimit } from "@runtime-cloud/eventing/event-log/watcher-limit";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import type { CapacityLease } from "../../generated/prisma/client.ts";
import { isOpen, ownLease } from "../capacity/capacity-lease.ts";
import type { Context } from "../context.ts";
import { type LeaseMessage, lifetime } from "./lease-message.ts";
import type { LeaseReads } from "./lease-reads.ts";

/**
 * WatchLease: the lease as it is, then each change as this process hears of it, and a waiter's moves in its queue; it
 * ends with the lease. It keeps the last change only, so a slow watcher costs one row. Throws NotFound for another
 * tenant's lease, Exhausted when the process has all the watchers that it may have.
 */
export function watchLease(
  { client, news }: Context,
  reads: LeaseReads,
): ServiceImpl<typeof ExecutionCapacityService>["watchLease"] {
  const watchers = watcherLimit();

  return async function* ({ leaseId }, call) {
    const { tenantId } = principalOf(call);
    const leave = watchers.enter(call.signal);
    const latest = new Latest<CapacityLease>(call.signal);
    // Followed before it is read, so that no change falls in between.
    const unfollow = news.follow(tenantId, leaseId.toLowerCase(), (lease) => latest.put(lease));
    try {
      let shown: Shown | undefined;
      let lease: CapacityLease | undefined = await ownLease(client, tenantId, leaseId);
      while (lease) {
        if (!shown || isNews(lease, shown.lease)) {
          const message = await reads.message(lease);
          if (!shown || differs({ lease, message }, shown)) {
            shown = { lease, message };
            yield { lease: message, ...(lease.state === "ACTIVE" && ttlAt(lease, await reads.now())) };
          }
        }
        if (!isOpen(lease)) return;
        lease = await latest.take();
      }
    } finally {
      unfollow();
      leave();
    }
  };
}

interface Shown {
  lease: CapacityLease;
  message: LeaseMessage;
}

/** A waiter is told again to see how it stands; else only what is newer than what was shown. */
function isNews(lease: CapacityLease, shown: CapacityLease): boolean {
  return lease.version > shown.version || (lease.version === shown.version && lease.state === "WAITING");
}

function differs({ lease, message }: Shown, shown: Shown): boolean {
  const [now, before] = [message.waiting, shown.message.waiting];
  return (
    lease.state !== shown.lease.state ||
    lease.expiresAt?.getTime() !== shown.lease.expiresAt?.getTime() ||
    now?.position !== before?.position ||
    now?.reason !== before?.reason
  );
}

function ttlAt(lease: CapacityLease, now: Date): Pick<ReturnType<typeof lifetime>, "ttl"> {
  const { ttl } = lifetime(lease, now);
  return ttl ? { ttl } : {};
}

/** Keeps what was put last until it is taken. */
class Latest<Value> {
  readonly #signal: AbortSignal;
  #value: Value | undefined;
  #wake: (() => void) | undefined;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#wake?.(), { once: true });
  }

  put(value: Value): void {
    this.#value = value;
    this.#wake?.();
  }

  /** Waits for a value; undefined once the signal is aborted. */
  async take(): Promise<Value | undefined> {
    if (this.#value === undefined && !this.#signal.aborted) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const value = this.#value;
    this.#value = undefined;
    return this.#signal.aborted ? undefined : value;
  }
}
