import type { Results } from "./report.ts";

/** Measures, and throws when a round did its work wrong: then nothing is reported. */
export type Benchmark = (options: BenchOptions) => Promise<Results>;

export interface BenchOptions {
  /** Fewer and shorter rounds: a minute or two, and figures that scatter more. */
  readonly quick: boolean;
  /** Told what happens, a line each. */
  readonly log: (line: string) => void;
}
