export interface GatherOptions<Item, Result> {
  /** Works on some items together, in the order in which they came; the results are in that order too. */
  work: (items: readonly Item[]) => Promise<readonly PromiseSettledResult<Result>[]>;
  /** How many batches are worked on at once. */
  lanes: number;
  /** Most items in a batch. */
  largest: number;
  /** However slow it is, a batch takes as many if they are there; without it 1. */
  smallest?: number;
  /** How long a batch should take, in milliseconds: its size follows from it. */
  targetMs: number;
  /** How many may wait; without it, as many as come. */
  mostWaiting?: { limit: number; refusal: () => Error };
  /** Milliseconds from any start. */
  elapsed?: () => number;
}

const FIRST_SIZE = 8;

/**
 * Gathers items while the batches before them are in work, so that what a batch costs is shared: the busier it is, the
 * larger the batches, and one item alone waits for nobody. A batch that took longer than its target makes the next
 * ones smaller. Answers a function that takes an item and promises its result.
 */
export function gather<Item, Result>(options: GatherOptions<Item, Result>): (item: Item) => Promise<Result> {
  const { work, lanes, largest, smallest = 1, targetMs, mostWaiting, elapsed = () => performance.now() } = options;
  const waiting: Waiting<Item, Result>[] = [];
  let busy = 0;
  let size = Math.min(Math.max(FIRST_SIZE, smallest), largest);

  async function workOff(): Promise<void> {
    busy += 1;
    // What comes in the same turn of the event loop goes together.
    await Promise.resolve();
    while (waiting.length > 0) {
      const batch = waiting.splice(0, size);
      const began = elapsed();
      settle(batch, await work(batch.map(({ item }) => item)).catch(refused));
      const fast = elapsed() - began < targetMs;
      if (!fast) size = Math.max(smallest, Math.floor(size / 2));
      else if (batch.length === size) size = Math.min(largest, size * 2);
    }
    busy -= 1;
  }

  return (item) =>
    new Promise<Result>((resolve, reject) => {
      if (mostWaiting && waiting.length >= mostWaiting.limit) return reject(mostWaiting.refusal());
      waiting.push({ item, resolve, reject });
      if (busy < lanes) void workOff();
    });
}

function settle<Item, Result>(
  batch: readonly Waiting<Item, Result>[],
  results: readonly PromiseSettledResult<Result>[] | Failure,
): void {
  for (const [index, { resolve, reject }] of batch.entries()) {
    const result = "reason" in results ? results : results[index];
    if (result?.status === "fulfilled") resolve(result.value);
    else reject(result?.reason ?? new Error("a batch left an item without result"));
  }
}

function refused(reason: unknown): Failure {
  return { status: "rejected", reason };
}

interface Failure {
  status: "rejected";
  reason: unknown;
}

interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}
