import { setTimeout as wait } from "node:timers/promises";

/** Lets one loop sleep until somebody wakes it or its time is up. A wake-up while it works isn't lost. */
export interface Wake {
  wake: () => void;
  sleep: (ms: number) => Promise<void>;
}

export function wakeable(): Wake {
  let awake = false;
  let alarm = new AbortController();
  return {
    wake() {
      awake = true;
      alarm.abort();
    },
    async sleep(ms) {
      if (!awake) await wait(ms, undefined, { signal: alarm.signal }).catch(() => undefined);
      awake = false;
      alarm = new AbortController();
    },
  };
}
