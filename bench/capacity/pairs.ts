import type { Contestant } from "../rounds.ts";
import { quantile } from "../spread.ts";
import type { LeasePath } from "./lease-path.ts";

export interface PairsOptions {
  /** The path's when absent. */
  readonly name?: string;
  readonly callers: number;
  readonly seconds: number;
}

const US_PER_MS = 1_000;

/** Callers that each take a slot, give it back and start again, for a while. */
export function pairs(path: LeasePath, { name = path.name, callers, seconds }: PairsOptions): Contestant {
  let highestBefore = 0n;
  return {
    name,
    async round() {
      const acquireMs: number[] = [];
      const tokens: bigint[] = [];
      const cpuBefore = process.cpuUsage();
      const start = performance.now();
      const end = start + seconds * 1_000;

      async function call(caller: number): Promise<void> {
        for (let asked = performance.now(); asked < end; asked = performance.now()) {
          const { token, release } = await path.acquire(caller);
          acquireMs.push(performance.now() - asked);
          if (token !== undefined) tokens.push(token);
          await release();
        }
      }

      await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
      const tookSeconds = (performance.now() - start) / 1_000;
      const { user, system } = process.cpuUsage(cpuBefore);
      return {
        figures: {
          pairs_per_second: acquireMs.length / tookSeconds,
          acquire_p50_ms: quantile(acquireMs, 0.5),
          acquire_p99_ms: quantile(acquireMs, 0.99),
          // Of this process alone, garbage collection included.
          process_cpu_ms_per_pair: (user + system) / US_PER_MS / acquireMs.length,
        },
        async check() {
          highestBefore = checkTokens(tokens, highestBefore);
          await path.check(acquireMs.length);
        },
      };
    },
  };
}

/** The highest of a round's tokens. Throws unless they are distinct, and higher than all before. */
function checkTokens(tokens: readonly bigint[], highestBefore: bigint): bigint {
  if (new Set(tokens).size !== tokens.length) throw new Error("a fencing token was given twice");
  let highest = highestBefore;
  for (const token of tokens) {
    if (token <= highestBefore) throw new Error(`fencing token ${token} isn't above ${highestBefore}, from before`);
    if (token > highest) highest = token;
  }
  return highest;
}
