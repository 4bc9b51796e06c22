import { expect, test } from "@jest/globals";
import { Code, ConnectError } from "@connectrpc/connect";
import { deadlineCause } from "@runtime-cloud/eventing/cause";
import { lookAt } from "@runtime-cloud/runtime-environment/observing/look";
import { ObservationFailed, type Observer } from "@runtime-cloud/runtime-environment/observers/observer";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { createLogger, silentLogger } from "@runtime-cloud/service-kit/logger";

const place = { id: "shop-test", tenantId: "shop" };

/** What is logged when an observer throws, and what is recorded. */
async function lookWith(thrown: Error) {
  const lines: unknown[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const logger = createLogger({ service: "test", level: "trace", destination });
  const observer: Observer = { name: "engine", observe: () => Promise.reject(thrown) };
  const look = { cause: deadlineCause("observation", uuidv7), timeoutMs: 1_000 };
  const sight = await lookAt({ clock: systemClock, logger }, observer, place, look);
  return { lines, sight };
}

test("an observer that couldn't look is one line of information, without a stack", async () => {
  const cause = new ConnectError("no such environment", Code.NotFound);
  const { lines, sight } = await lookWith(new ObservationFailed("the engine is busy", { cause }));
  expect(sight).toMatchObject({ failure: "the engine is busy" });
  expect(lines).toMatchObject([
    { level: "info", environmentId: place.id, observer: "engine", failure: "the engine is busy" },
  ]);
  expect(JSON.stringify(lines)).not.toContain("stack");
});

test("an observer's defect is a warning with its stack, and its text stays in the log", async () => {
  const { lines, sight } = await lookWith(new TypeError("x is not a function"));
  expect(sight).toMatchObject({ failure: "internal error: the service's log has it" });
  expect(lines).toMatchObject([
    {
      level: "warn",
      environmentId: place.id,
      err: { type: "TypeError", stack: expect.stringContaining("x is not a function") },
    },
  ]);
});

test("an observer that never answers, and doesn't listen to its signal, has failed when its time is over", async () => {
  const deaf: Observer = { name: "http", observe: () => new Promise(() => undefined) };
  const look = { cause: deadlineCause("observation", uuidv7), timeoutMs: 100 };
  const sight = await lookAt({ clock: systemClock, logger: silentLogger() }, deaf, place, look);
  expect(sight).toMatchObject({ observer: "http", failure: expect.stringContaining("no answer within") });
});
