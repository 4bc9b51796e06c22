import { until } from "@runtime-cloud/local-servers/until";

/** What a handler did in one round, in instants of `performance.now()`. */
export class Ledger {
  readonly #started = new Map<string, number>();
  #done = 0;
  #lastDoneAt = 0;
  #wrong: string | undefined;

  started(eventId: string): void {
    if (this.#started.has(eventId)) this.wrong(`event ${eventId} was handled twice`);
    this.#started.set(eventId, performance.now());
  }

  done(): void {
    this.#done += 1;
    this.#lastDoneAt = performance.now();
  }

  /** Fails the round; the first reason counts. */
  wrong(reason: string): void {
    this.#wrong ??= reason;
  }

  /** When the last of `count` events was done. Throws at what went wrong, and when it takes too long. */
  async finished(count: number, timeoutMs: number): Promise<number> {
    await until(`${count} handled events`, timeoutMs, () => {
      if (this.#wrong !== undefined) throw new Error(this.#wrong);
      return this.#done >= count || undefined;
    });
    return this.#lastDoneAt;
  }

  startedAt(eventId: string): number {
    const at = this.#started.get(eventId);
    if (at === undefined) throw new Error(`event ${eventId} was never handled`);
    return at;
  }

  /** Throws unless these events were handled, each once, and no other. */
  check(eventIds: readonly string[]): void {
    if (this.#wrong !== undefined) throw new Error(this.#wrong);
    for (const id of eventIds) this.startedAt(id);
    if (this.#done !== eventIds.length || this.#started.size !== eventIds.length) {
      throw new Error(`${this.#started.size} events were begun and ${this.#done} done, of ${eventIds.length}`);
    }
  }

  /** Begins a new round. */
  clear(): void {
    this.#started.clear();
    this.#done = 0;
    this.#wrong = undefined;
  }
}
