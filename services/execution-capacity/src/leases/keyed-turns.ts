/** What has a key, and may begin only once those before it that have the same key are done. */
export interface Keyed {
  readonly key: string;
  next?: Keyed | undefined;
  begin(): void;
}

/**
 * Lets what has the same key happen one after the other, in the order in which it came, and all else at once. It
 * remembers nothing of a key for which nothing is under way.
 */
export class KeyedTurns {
  readonly #last = new Map<string, Keyed>();

  /** Calls `begin` once nothing of its key is under way any more: now, or from within {@link done}. */
  enter(item: Keyed): void {
    const before = this.#last.get(item.key);
    this.#last.set(item.key, item);
    if (before) before.next = item;
    else item.begin();
  }

  done({ key, next }: Keyed): void {
    if (next) next.begin();
    else this.#last.delete(key);
  }
}
