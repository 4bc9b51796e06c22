/** Does work of one key after the other, in order of arrival; other keys don't wait for it. */
export type Lanes = <T>(key: string, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

/**
 * A tenant's changes of capacity take one lock after the other anyway. In a lane they queue for it here, where a waiting
 * call holds no connection, and is dropped once its `signal` is aborted. The database's locks keep processes apart.
 */
export function lanes(): Lanes {
  const ends = new Map<string, Promise<unknown>>();
  return async (key, signal, work) => {
    const turn = (ends.get(key) ?? Promise.resolve()).then(() => {
      signal.throwIfAborted();
      return work();
    });
    const end = turn.catch(() => undefined);
    ends.set(key, end);
    try {
      return await turn;
    } finally {
      if (ends.get(key) === end) ends.delete(key);
    }
  };
}
