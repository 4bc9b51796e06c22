/** Works on each of the items, on so many at a time. Rejects with the first failure, once no work is under way. */
export async function eachOf<Item>(
  items: Iterable<Item>,
  atOnce: number,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  const workers = Array.from({ length: atOnce }, async () => {
    for (let next = iterator.next(); !next.done; next = iterator.next()) await work(next.value);
  });
  const failure = (await Promise.allSettled(workers)).find((outcome) => outcome.status === "rejected");
  if (failure) throw failure.reason;
}

/** From 0 on. */
export function* numbers(count: number): Generator<number> {
  for (let number = 0; number < count; number += 1) yield number;
}
