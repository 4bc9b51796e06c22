import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

/** What the last run came to, for whoever started it. */
const RESULT = fileURLToPath(new URL("../.data/test-result.json", import.meta.url));

/**
 * Writes down how many tests passed and failed, and which files failed with how many of each. A file that doesn't even
 * load counts as one failed test.
 */
export default class TestCountReporter {
  onRunComplete(_contexts, { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, testResults }) {
    const failedFiles = testResults
      .filter(({ numFailingTests, testExecError }) => numFailingTests > 0 || testExecError)
      .map(({ testFilePath, numPassingTests }) => ({ path: testFilePath, passed: numPassingTests }));
    const result = { passed: numPassedTests, failed: numFailedTests + numRuntimeErrorTestSuites, failedFiles };
    mkdirSync(dirname(RESULT), { recursive: true });
    writeFileSync(RESULT, JSON.stringify(result));
  }
}
