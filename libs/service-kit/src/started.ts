type Stop = () => Promise<unknown>;

/** What has been started so far, so that it can be stopped in good order: the last one first. */
export class Started {
  readonly #stops: Stop[] = [];

  add(stop: Stop): void {
    this.#stops.unshift(stop);
  }

  /** For what has to be there until the very end, though it is started late. */
  addLast(stop: Stop): void {
    this.#stops.push(stop);
  }

  /** Stops one after the other, also after one that fails; rejects in the end when any did. */
  async stop(): Promise<void> {
    const failures: unknown[] = [];
    for (const stop of this.#stops.splice(0)) await stop().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, "not everything stopped in good order");
  }
}
