import { expect, test } from "@jest/globals";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import { type LogLine, recordingLogger } from "./probe-server.ts";

const ESC = String.fromCharCode(27);

test("control characters and terminal colours don't reach the log, in messages, fields or errors", () => {
  const log: LogLine[] = [];
  const logger = recordingLogger(log);
  logger.info({ output: `${ESC}[31mred${ESC}[0m\u0007`, nested: { line: `a\rb` } }, `plan ${ESC}[2Jdone`);
  logger.error({ err: new Error(`bad ${ESC}]0;title\u0007`) });
  expect(log[0]).toMatchObject({ output: "red", nested: { line: "ab" }, msg: "plan done" });
  expect(log[1]).toMatchObject({ err: { type: "Error", message: "bad ]0;title" } });
});

test("credentials are removed by field and by pattern", () => {
  const log: LogLine[] = [];
  const logger = recordingLogger(log);
  const headers = { authorization: "Bearer abc.def" };
  logger.info({ headers, token: "t0ken", url: "postgres://app:hunter2@db/app" }, "sent Bearer abc.def");
  const line = JSON.stringify(log[0]);
  expect(line).not.toMatch(/abc\.def|t0ken|hunter2/);
  expect(log[0]).toMatchObject({ url: "postgres://app:[redacted]@db/app", msg: "sent Bearer [redacted]" });
});

test("of an error only type, message, code, stack and causes are kept", () => {
  const log: LogLine[] = [];
  const error = Object.assign(new Error("query failed", { cause: new TypeError("inner") }), {
    code: "P2010",
    parameters: ["canary"],
  });
  recordingLogger(log).error({ err: error }, "failed");
  expect(log[0]?.err).toMatchObject({
    type: "Error",
    message: "query failed",
    code: "P2010",
    cause: { type: "TypeError" },
  });
  expect(JSON.stringify(log)).not.toContain("canary");
});

test("values that JSON doesn't know don't break a line", () => {
  const log: LogLine[] = [];
  const circle: Record<string, unknown> = { big: 9_007_199_254_740_993n };
  circle.self = circle;
  recordingLogger(log).info({ circle }, "logged");
  expect(log[0]).toMatchObject({ circle: { big: "9007199254740993" }, msg: "logged" });
});

test("pretty lines are for people: time, level, service, message, fields, stack", () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const logger = createLogger({ service: "capacity", level: "info", pretty: true, destination });
  logger.info({ pool: "p1", size: 3 }, "pool grew");
  logger.error({ err: new Error("boom") }, "failed");
  expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} INFO {2}capacity: pool grew pool=p1 size=3\n$/);
  expect(lines[1]).toMatch(/ERROR capacity: failed\n {2}Error: boom\n {6}at /);
});
