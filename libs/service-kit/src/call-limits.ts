import { Code, ConnectError, type Interceptor, type StreamRequest, type UnaryRequest } from "@connectrpc/connect";

/** The deadline of a unary call whose client sets none. */
export const DEFAULT_DEADLINE_MS = 15_000;
/** The longest that a unary call may take, whatever deadline its client sets. */
export const MAX_UNARY_MS = 60_000;
/** How long a stream may take to end by itself once the server drains. */
const WIND_DOWN_MS = 1_000;

/**
 * Ends unary calls at their deadline, also those that don't listen to their signal, and ends streams with UNAVAILABLE
 * once `draining` is aborted, so that a watcher knows to resume elsewhere. A drain lets unary calls finish.
 */
export function limitCalls(draining: AbortSignal): Interceptor {
  return (next) => (request) => (request.stream ? endOnDrain(next, request, draining) : withDeadline(next, request));
}

type Next = Parameters<Interceptor>[0];

async function withDeadline(next: Next, request: UnaryRequest) {
  const limit = hasDeadline(request.header) ? MAX_UNARY_MS : DEFAULT_DEADLINE_MS;
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(tooLate(limit)), limit);
  const call = link([request.signal, deadline.signal]);
  try {
    return await Promise.race([next({ ...request, signal: call.signal }), aborted(call.signal)]);
  } finally {
    clearTimeout(timer);
    call.unlink();
  }
}

async function endOnDrain(next: Next, request: StreamRequest, draining: AbortSignal) {
  const call = link([request.signal, draining]);
  try {
    const response = await next({ ...request, signal: call.signal });
    if (!response.stream) return response;
    // The one answer to a stream of requests says what was done: it goes out whole.
    const cut = request.method.methodKind === "client_streaming" ? undefined : draining;
    return { ...response, message: untilDrained(response.message, cut, call.unlink) };
  } catch (error) {
    call.unlink();
    throw error;
  }
}

/**
 * Passes messages on. While `draining`, an end without an error becomes the signal's reason, since a handler that just
 * returns would look complete, and a handler that goes on waiting is left behind.
 */
async function* untilDrained<T>(messages: AsyncIterable<T>, draining: AbortSignal | undefined, unlink: () => void) {
  const iterator = messages[Symbol.asyncIterator]();
  let cut: ((reason: unknown) => void) | undefined;
  let timer: NodeJS.Timeout | undefined;
  const onDrain = () => {
    timer = setTimeout(() => cut?.(draining?.reason), WIND_DOWN_MS);
  };
  draining?.addEventListener("abort", onDrain, { once: true });
  if (draining?.aborted) onDrain();
  try {
    for (;;) {
      const step = await new Promise<IteratorResult<T>>((resolve, reject) => {
        cut = reject;
        iterator.next().then(resolve, reject);
      });
      if (!step.done) yield step.value;
      else if (draining?.aborted) throw draining.reason;
      else return;
    }
  } catch (error) {
    throw draining?.aborted ? draining.reason : error;
  } finally {
    clearTimeout(timer);
    draining?.removeEventListener("abort", onDrain);
    unlink();
    // Not awaited: a handler that waits for something else would hold the call.
    iterator.return?.().catch(() => undefined);
  }
}

function hasDeadline(header: Headers): boolean {
  return header.has("grpc-timeout") || header.has("connect-timeout-ms");
}

function tooLate(limit: number): ConnectError {
  return new ConnectError(`no answer within ${limit / 1_000} s`, Code.DeadlineExceeded);
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const end = () => reject(ConnectError.from(signal.reason, Code.Canceled));
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}

/** Like `AbortSignal.any`, but lets go of its sources: Node 20 keeps every dependent of a signal that lives long. */
function link(sources: readonly AbortSignal[]) {
  const controller = new AbortController();
  const follow = (event: Event) => {
    if (event.target instanceof AbortSignal) controller.abort(event.target.reason);
  };
  for (const source of sources) {
    if (source.aborted) controller.abort(source.reason);
    else source.addEventListener("abort", follow, { once: true });
  }
  const unlink = () => {
    for (const source of sources) source.removeEventListener("abort", follow);
  };
  return { signal: controller.signal, unlink };
}
