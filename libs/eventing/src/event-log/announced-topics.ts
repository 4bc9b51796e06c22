import { eventCatalogue } from "@runtime-cloud/contracts/events/event-catalogue";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";

/** Throws InvalidInput for topics that a service doesn't announce: a filter by them would let nothing through, ever. */
export function refuseForeignTopics(topics: readonly string[], producer: string): void {
  const own = eventCatalogue.filter((event) => event.producer === producer).map(({ topic }) => topic);
  const fieldViolations = topics.flatMap((topic, index) => {
    if (own.includes(topic)) return [];
    const description = `${topic} isn't announced by ${producer}, which announces ${[...own].sort().join(", ")}`;
    return [{ field: `topics[${index}]`, description }];
  });
  if (fieldViolations.length > 0) throw new InvalidInput(fieldViolations);
}
