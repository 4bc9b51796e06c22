/** The database's time as it must be by now, by this process's monotonic clock: the time of day here doesn't matter. */
export interface DatabaseTime {
  /** Takes a reading that has just come. */
  read(instant: Date): void;
  /** Undefined when the last reading is too long ago to go by. */
  now(): Date | undefined;
}

/** Two clocks drift apart by a millisecond in this time at worst. */
const GOOD_FOR_MS = 10_000;

/** `elapsed`: milliseconds from any start. */
export function databaseTime(elapsed: () => number = () => performance.now()): DatabaseTime {
  let reading: { instantMs: number; at: number } | undefined;
  return {
    read(instant) {
      reading = { instantMs: instant.getTime(), at: elapsed() };
    },
    now() {
      const since = reading ? elapsed() - reading.at : Infinity;
      return reading && since < GOOD_FOR_MS ? new Date(reading.instantMs + Math.floor(since)) : undefined;
    },
  };
}
