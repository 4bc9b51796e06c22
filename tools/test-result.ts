import { readFileSync } from "node:fs";

/** What a run of Jest came to, as `test-count-reporter.mjs` writes it down. */
export interface TestResult {
  passed: number;
  failed: number;
  /** Files with a failed test, or that don't load, and how many of their tests passed. */
  failedFiles: readonly { path: string; passed: number }[];
}

/** Undefined when the run ended before it could say. */
export function readTestResult(file: string): TestResult | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

/** Of a run, and another one of just its failed files: what counts of those is the other one. */
export function afterSecondTry(first: TestResult, second: TestResult): TestResult {
  const replaced = first.failedFiles.reduce((sum, { passed }) => sum + passed, 0);
  return { ...second, passed: first.passed - replaced + second.passed };
}
