import { expect, jest, test } from "@jest/globals";
import { PROCESS_TIMEOUT_MS, runProbeProcess, startProbeProcess } from "./probe-process.ts";

jest.setTimeout(PROCESS_TIMEOUT_MS);

test.each(["SIGTERM", "SIGINT"] as const)("%s stops the process in good order with exit code 0", async (signal) => {
  const running = await startProbeProcess();
  expect(await running.stop(signal)).toBe(0);
  const log = await running.log;
  expect(log).toContain('"msg":"stopping"');
  expect(log).toContain('"msg":"stopped"');
});

test("a stop that hangs is left behind with exit code 1 and a line that says so", async () => {
  const running = await startProbeProcess({ STOP_MS: "60000" });
  expect(await running.stop("SIGTERM")).toBe(1);
  expect(await running.log).toContain("did not stop in time");
});

test("a signal during the start is heard at once, and stops what was started", async () => {
  const starting = await startProbeProcess({ START_MS: "500", STOP_MS: "0" });
  expect(await starting.stop("SIGTERM")).toBe(0);
  const log = await starting.log;
  expect(log).toMatch(/"msg":"stopping".*"msg":"stopped"/s);
  expect(log).not.toContain('"msg":"ready"');
});

test("a start that doesn't end is left behind when the grace is over", async () => {
  const starting = await startProbeProcess({ START_MS: "60000", STOP_MS: "0" });
  expect(await starting.stop("SIGTERM")).toBe(1);
  expect(await starting.log).toContain("did not stop in time");
});

test.each([
  ["start", { START_MS: "60000", STOP_MS: "0" }],
  ["stop", { STOP_MS: "60000" }],
])("a second signal ends the process at once, during its %s", async (_during, env) => {
  const running = await startProbeProcess(env);
  expect(await running.stop("SIGTERM", "SIGINT")).toBe(1);
  expect(await running.log).not.toMatch(/did not stop in time|"msg":"stopped"/);
});

test("settings that can't be used are printed as they are, with exit code 78 and no stack", async () => {
  const { code, log } = await runProbeProcess({ STOP_MS: "soon" });
  expect(code).toBe(78);
  expect(log).toBe(
    "The configuration can't be used:\n" +
      '  STOP_MS="soon" is not a whole number from 0 to 60000; it wants: how long stopping takes, in milliseconds\n',
  );
});
