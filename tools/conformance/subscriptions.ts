import type { BeyondPages } from "./beyond-pages.ts";
import type { CatalogueSubscription } from "./catalogue.ts";
import { type Comparison, match, propertyDifferences } from "./comparison.ts";

const PROPERTIES = ["producer", "handler", "purpose"] as const;

/** The catalogue's subscriptions and the declared ones, without those that go beyond its pages by decision. */
export function compareSubscriptions(
  expected: readonly CatalogueSubscription[],
  declared: readonly CatalogueSubscription[],
  beyond: readonly BeyondPages[],
): Comparison {
  const decided = new Set(beyond.map(decisionKey));
  const found = declared.filter((subscription) => !decided.has(decisionKey(subscription)));
  const { pairs, missing, extra } = match(expected, found, subscriptionKey);
  return {
    kind: "subscriptions",
    expected: expected.length,
    found: found.length,
    differences: [
      ...missing.map((wanted) => `${subscriptionKey(wanted)}: proto declares no such subscription`),
      ...extra.map((subscription) => `${subscriptionKey(subscription)}: the catalogue has no such subscription`),
      ...pairs.flatMap(([wanted, subscription]) =>
        propertyDifferences(subscriptionKey(wanted), wanted, subscription, PROPERTIES),
      ),
    ],
  };
}

/** The subscriptions that go beyond the pages: each is declared, and none of them is on a page by now. */
export function compareBeyondPages(
  expected: readonly CatalogueSubscription[],
  declared: readonly CatalogueSubscription[],
  beyond: readonly BeyondPages[],
): Comparison {
  const { pairs, missing } = match(beyond, declared, decisionKey);
  const listed = match(beyond, expected, decisionKey).pairs;
  return {
    kind: "subscriptions beyond the pages",
    expected: beyond.length,
    found: pairs.length,
    differences: [
      ...missing.map((decision) => `${decisionKey(decision)}: decided, but proto doesn't declare it`),
      ...listed.map(([decision]) => `${decisionKey(decision)}: the catalogue lists it, so it isn't beyond the pages`),
    ],
  };
}

/** Whether each subscription is to an event that exists, and from the service that announces it. */
export function compareSources(
  declared: readonly CatalogueSubscription[],
  events: readonly { name: string; producer: string }[],
  elsewhere: readonly string[],
): Comparison {
  const producers = new Map(events.map(({ name, producer }) => [name, producer]));
  const known = declared.filter(({ event }) => !elsewhere.includes(event));
  const differences = known.flatMap((subscription) => {
    const producer = producers.get(subscription.event);
    if (producer === undefined) return [`${subscriptionKey(subscription)}: no proto message declares the event`];
    if (producer === subscription.producer) return [];
    return [`${subscriptionKey(subscription)}: the event's producer is ${producer}, not ${subscription.producer}`];
  });
  return {
    kind: "events of subscriptions",
    expected: known.length,
    found: known.filter(({ event }) => producers.has(event)).length,
    differences,
  };
}

function subscriptionKey({ consumer, event }: { consumer: string; event: string }): string {
  return `${consumer} on ${event}`;
}

function decisionKey({ consumer, event, handler }: { consumer: string; event: string; handler: string }): string {
  return `${consumer} on ${event} by ${handler}`;
}
