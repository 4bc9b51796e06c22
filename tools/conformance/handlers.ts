import { type Comparison, match } from "./comparison.ts";

/** A service's reaction to an event, as it is subscribed to or as the code has it. */
export interface Handling {
  consumer: string;
  event: string;
  handler: string;
}

/** Our services' subscriptions and the handlers in their code, both ways. */
export function compareHandlers(subscriptions: readonly Handling[], handlers: readonly Handling[]): Comparison {
  const { missing, extra } = match(subscriptions, handlers, handlingKey);
  return {
    kind: "handlers",
    expected: subscriptions.length,
    found: handlers.length,
    differences: [
      ...missing.map((subscription) => `${handlingKey(subscription)}: the service's code has no such handler`),
      ...extra.map(
        (handler) => `${handlingKey(handler)}: the code has this handler, but proto has no such subscription`,
      ),
    ],
  };
}

/** Whether each handler has a test whose title names it. */
export function compareTests(handlers: readonly Handling[], testTitles: readonly string[]): Comparison {
  const untested = handlers.filter(({ handler }) => {
    const named = new RegExp(String.raw`\b${handler}\b`);
    return !testTitles.some((title) => named.test(title));
  });
  return {
    kind: "tests of handlers",
    expected: handlers.length,
    found: handlers.length - untested.length,
    differences: untested.map((handler) => `${handlingKey(handler)}: no test's title under test/ names the handler`),
  };
}

function handlingKey({ consumer, event, handler }: Handling): string {
  return `${consumer} on ${event} by ${handler}`;
}
