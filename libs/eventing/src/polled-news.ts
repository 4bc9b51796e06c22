import type { Logger } from "@runtime-cloud/service-kit/logger";

/** What somebody waits for: news of one thing. */
export interface NewsWanted<Glimpse> {
  id: string;
  /** Asked at each look. Must not throw. */
  isNews(glimpse: Glimpse): boolean;
}

/** What becomes of things, whichever process works on them. */
export interface News<Glimpse, Wanted extends NewsWanted<Glimpse>> {
  /**
   * How a thing stands, as soon as that is news to the caller; undefined once the signal is aborted. Nothing is missed
   * between two calls, since the caller says itself what is news to it.
   */
  next(wanted: Wanted, signal: AbortSignal): Promise<Glimpse | undefined>;
}

export interface PolledNewsOptions<Glimpse, Wanted extends NewsWanted<Glimpse>> {
  /** How those stand that somebody asks for, by id. */
  look(asked: readonly Wanted[]): Promise<ReadonlyMap<string, Glimpse>>;
  /** What is followed, in the log: for example `runs`. */
  followed: string;
  logger: Logger;
}

/** How often is looked while somebody waits for something, once for all of them. */
const LOOK_EVERY_MS = 300;
/** Looks take a tenth of the time at most: one that takes long comes less often. */
const PAUSE_PER_LOOK = 9;
const MAX_PAUSE_MS = 3_000;

/** News by looking again and again, as long as somebody of this process waits for any. */
export function polledNews<Glimpse, Wanted extends NewsWanted<Glimpse>>({
  look,
  followed,
  logger,
}: PolledNewsOptions<Glimpse, Wanted>): News<Glimpse, Wanted> {
  const waiting = new Set<Waiting<Glimpse, Wanted>>();
  let timer: NodeJS.Timeout | undefined;
  let looking = false;
  let failing = false;
  let pauseMs = LOOK_EVERY_MS;

  function schedule(): void {
    if (timer || looking || waiting.size === 0) return;
    timer = setTimeout(() => {
      timer = undefined;
      looking = true;
      void tell().finally(() => {
        looking = false;
        schedule();
      });
    }, pauseMs);
  }

  async function tell(): Promise<void> {
    const from = performance.now();
    const asking = [...waiting];
    try {
      const glimpses = await look(asking.map(({ wanted }) => wanted));
      for (const { wanted, resolve } of asking) {
        const glimpse = glimpses.get(wanted.id);
        if (glimpse !== undefined && wanted.isNews(glimpse)) resolve(glimpse);
      }
      failing = false;
    } catch (err) {
      if (!failing) logger.warn({ err, followed }, "what is followed can't be looked at now; the looks go on");
      failing = true;
    }
    pauseMs = Math.min(MAX_PAUSE_MS, Math.max(LOOK_EVERY_MS, (performance.now() - from) * PAUSE_PER_LOOK));
  }

  return {
    next(wanted, signal) {
      if (signal.aborted) return Promise.resolve(undefined);
      return new Promise((resolve) => {
        const end = (glimpse?: Glimpse) => {
          waiting.delete(entry);
          signal.removeEventListener("abort", onAbort);
          if (waiting.size === 0) {
            clearTimeout(timer);
            timer = undefined;
          }
          resolve(glimpse);
        };
        const onAbort = () => end();
        const entry: Waiting<Glimpse, Wanted> = { wanted, resolve: end };
        waiting.add(entry);
        signal.addEventListener("abort", onAbort, { once: true });
        schedule();
      });
    },
  };
}

interface Waiting<Glimpse, Wanted> {
  wanted: Wanted;
  resolve(glimpse: Glimpse): void;
}
