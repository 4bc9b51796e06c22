import fc from "fast-check";
import { amount } from "./amount.ts";

export interface Promised<Input> {
  input: fc.Arbitrary<Input>;
  runs: number;
  /** Throws when a promise is broken. */
  by: (input: Input) => Promise<void>;
  /** Milliseconds to look for a smaller input that fails; 0: a run of many at once seldom fails the same way again. */
  shrinkMs?: number;
}

/**
 * Tries a promise on generated inputs. A failure names the seed and the path: CAPACITY_SEED generates the same inputs
 * again, though what happens at once may come in another order.
 */
export async function hold<Input>({ input, runs, by, shrinkMs = 0 }: Promised<Input>): Promise<void> {
  const { seed } = amount;
  let failed: unknown;
  const property = fc.asyncProperty(input, async (given) => {
    try {
      await by(given);
    } catch (error) {
      failed = error;
      throw error;
    }
  });
  const began = performance.now();
  const details = await fc.check(property, { seed, numRuns: runs, endOnFailure: shrinkMs === 0, ...within(shrinkMs) });
  if (!details.failed) return;
  const said = failed instanceof Error ? failed.message : String(failed);
  const shrunk = `${details.numShrinks} times smaller, after ${Math.round(performance.now() - began)} ms`;
  throw new Error(`seed ${seed}, path ${details.counterexamplePath ?? "unknown"}, ${shrunk}:\n  ${said}`);
}

function within(shrinkMs: number) {
  return shrinkMs === 0 ? {} : { interruptAfterTimeLimit: shrinkMs, markInterruptAsFailure: false };
}
