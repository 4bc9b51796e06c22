import { expect, test } from "@jest/globals";
import { afterSecondTry } from "../../tools/test-result.ts";

test("a second try's counts take the place of what its files came to before", () => {
  const first = {
    passed: 100,
    failed: 3,
    failedFiles: [
      { path: "a.test.ts", passed: 4 },
      { path: "doesn't-load.test.ts", passed: 0 },
    ],
  };
  const mended = { passed: 9, failed: 0, failedFiles: [] };
  expect(afterSecondTry(first, mended)).toEqual({ passed: 105, failed: 0, failedFiles: [] });

  const stillFails = { passed: 5, failed: 1, failedFiles: [{ path: "a.test.ts", passed: 5 }] };
  expect(afterSecondTry(first, stillFails)).toEqual({ ...stillFails, passed: 101 });
});
