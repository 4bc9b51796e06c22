import type {
  LeaseSessionRequest,
  LeaseSessionResponse,
} from "@runtime-cloud/contracts/runtimecloud/capacity/v1/leases_pb";

/** Operations that were read and whose results the caller hasn't taken. Beyond them the session stops reading. */
const MAX_UNDER_WAY = 1_000;

/** How a session's messages flow: read while there is room, results kept until the caller takes them. */
export class SessionFlow {
  readonly #requests: AsyncIterator<LeaseSessionRequest>;
  readonly #signal: AbortSignal;
  #results: LeaseSessionResponse[] = [];
  #underWay = 0;
  #reading = true;
  #failure: { error: unknown } | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  constructor(requests: AsyncIterable<LeaseSessionRequest>, signal: AbortSignal) {
    this.#requests = requests[Symbol.asyncIterator]();
    this.#signal = signal;
    signal.addEventListener("abort", this.#stopReading, { once: true });
    if (signal.aborted) this.#stopReading();
  }

  /** Reads until the caller has closed its side, the call ends, or a message can't be read. */
  start(take: (request: LeaseSessionRequest) => void): void {
    this.#read(take)
      .catch((error: unknown) => {
        // Once the call has ended, that its requests break off says nothing more.
        if (this.#reading) this.#failure = { error };
      })
      .finally(this.#stopReading);
  }

  /** A result for the caller. */
  put(result: LeaseSessionResponse): void {
    this.#results.push(result);
    this.#wakeWriter?.();
  }

  /** A result that nobody counted on: it takes up room too, until it is taken. */
  putMore(result: LeaseSessionResponse): void {
    this.#underWay += 1;
    this.put(result);
  }

  /** The results since the last call. */
  taken(): LeaseSessionResponse[] {
    const results = this.#results;
    this.#results = [];
    return results;
  }

  /** That the caller has taken a result. */
  delivered(): void {
    this.#underWay -= 1;
    if (this.#underWay < MAX_UNDER_WAY) this.#wakeReader?.();
  }

  /** Resolves once there are results, or the session is over. */
  async more(): Promise<void> {
    while (this.#results.length === 0 && !this.over) {
      await new Promise<void>((resolve) => (this.#wakeWriter = resolve));
    }
    this.#wakeWriter = undefined;
  }

  /** Whether no request will be read any more, and every result was taken. */
  get over(): boolean {
    return !this.#reading && this.#underWay === 0;
  }

  get open(): boolean {
    return this.#reading;
  }

  /** Throws what kept the requests from being read, if anything did. */
  throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }

  leave(): void {
    this.#stopReading();
    this.#signal.removeEventListener("abort", this.#stopReading);
    this.#requests.return?.().catch(() => undefined);
  }

  async #read(take: (request: LeaseSessionRequest) => void): Promise<void> {
    while (this.#reading) {
      if (this.#underWay >= MAX_UNDER_WAY) await new Promise<void>((resolve) => (this.#wakeReader = resolve));
      else {
        const step = await this.#requests.next();
        if (step.done || !this.#reading) return;
        this.#underWay += 1;
        take(step.value);
      }
    }
  }

  readonly #stopReading = (): void => {
    this.#reading = false;
    this.#wakeReader?.();
    this.#wakeWriter?.();
  };
}
