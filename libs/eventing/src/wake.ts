/** Lets one loop sleep until somebody wakes it or its time is up. A wake-up while it works isn't lost. */
export interface Wake {
  wake: () => void;
  sleep: (ms: number) => Promise<void>;
}

export function wakeable(): Wake {
  let awake = false;
  let rise: (() => void) | undefined;
  return {
    wake() {
      awake = true;
      rise?.();
    },
    async sleep(ms) {
      if (!awake) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          rise = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        rise = undefined;
      }
      awake = false;
    },
  };
}
