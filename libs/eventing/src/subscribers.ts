import { eventCatalogue } from "@runtime-cloud/contracts/events/event-catalogue";
import { ConfigError } from "@runtime-cloud/service-kit/config";

/** Throws ConfigError for names in SUBSCRIBERS that no event of the catalogue is delivered to. */
export function refuseUnknownSubscribers(subscribers: readonly string[]): void {
  const known = [...new Set(eventCatalogue.flatMap(({ consumers }) => consumers))].sort();
  const unknown = subscribers.filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw new ConfigError([
    `SUBSCRIBERS names ${unknown.join(", ")}, which no event is delivered to; the names that exist: ${known.join(", ")}`,
  ]);
}
