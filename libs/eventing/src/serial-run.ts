/** Work that never overlaps itself, however many ask for it at once. */
export interface SerialRun<T> {
  /** Starts the work, or, while it runs, joins the one run that follows: each caller gets a run begun after its call. */
  run(): Promise<T>;
  busy(): boolean;
  /** Settles when nothing runs any more. */
  idle(): Promise<void>;
}

export function serialRun<T>(work: () => Promise<T>): SerialRun<T> {
  let current: Promise<T> | undefined;
  let next: Promise<T> | undefined;

  function run(): Promise<T> {
    if (current) {
      next ??= settled(current).then(() => {
        next = undefined;
        return run();
      });
      return next;
    }
    const started = work().finally(() => {
      current = undefined;
    });
    current = started;
    return started;
  }

  return {
    run,
    busy: () => current !== undefined || next !== undefined,
    async idle() {
      while (current) await settled(next ?? current);
    },
  };
}

async function settled(promise: Promise<unknown>): Promise<void> {
  await Promise.allSettled([promise]);
}
