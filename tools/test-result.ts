import { readFileSync } from "node:fs";
import { z } from "zod";

const testResult = z.object({
  passed: z.int(),
  failed: z.int(),
  failedFiles: z.array(z.object({ path: z.string(), passed: z.int() })),
});

/**
 * What a run of Jest came to, as `test-count-reporter.mjs` writes it down; with the files that have a failed test, or
 * don't load, and how many of their tests passed.
 */
export type TestResult = z.output<typeof testResult>;

/** Undefined when the run ended before it could say. */
export function readTestResult(file: string): TestResult | undefined {
  try {
    return testResult.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return undefined;
  }
}

/** Of a run, and another one of just its failed files: what counts of those is the other one. */
export function afterSecondTry(first: TestResult, second: TestResult): TestResult {
  const replaced = first.failedFiles.reduce((sum, { passed }) => sum + passed, 0);
  return { ...second, passed: first.passed - replaced + second.passed };
}
