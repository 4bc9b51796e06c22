/** The current instant. Code below `main.ts` takes it from here, so that a test decides what time it is. */
export interface Clock {
  now(): Date;
}

/** The process's own clock. What must be exact is read from the database's clock instead. */
export const systemClock: Clock = { now: () => new Date() };
