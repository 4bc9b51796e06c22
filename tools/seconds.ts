/** The time since `started` (of `performance.now()`), as people read it: `0.4 s`. */
export function seconds(started: number): string {
  return `${((performance.now() - started) / 1000).toFixed(1)} s`;
}
