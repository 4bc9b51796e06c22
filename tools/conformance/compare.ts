import { compareAnnouncements, compareDelivered } from "./announcements.ts";
import { type BeyondPages, eventsOfOtherPlanes } from "./beyond-pages.ts";
import { type Catalogue, OUR_PLANE } from "./catalogue.ts";
import { compareCommands } from "./commands.ts";
import type { Comparison } from "./comparison.ts";
import type { Declared } from "./declared.ts";
import { compareAssumed, compareEvents, compareFields } from "./events.ts";
import { compareHandlers, compareTests, type Handling } from "./handlers.ts";
import { compareBeyondPages, compareSources, compareSubscriptions } from "./subscriptions.ts";

/** What the repository has, read from its proto files, its machines, its services' code and its tests. */
export interface Implementation {
  declared: Declared;
  beyondPages: readonly BeyondPages[];
  /** The events that some edge of some machine announces. */
  announced: readonly string[];
  /** The events that `libs/contracts` reads and delivers. */
  delivered: readonly string[];
  handlers: readonly Handling[];
  testTitles: readonly string[];
}

/** The catalogue against the repository, kind by kind, both ways. */
export function compare({ planes }: Catalogue, found: Implementation): Comparison[] {
  const { declared, beyondPages, handlers } = found;
  const events = planes.flatMap((plane) => plane.events);
  const subscriptions = planes.flatMap(({ consumed }) => consumed);
  const ours = planes.filter(({ plane }) => plane === OUR_PLANE);
  const ourServices = new Set(ours.flatMap((plane) => plane.events.map(({ producer }) => producer)));
  const ourSubscriptions = declared.subscriptions.filter(({ consumer }) => ourServices.has(consumer));
  const ourEvents = ours.flatMap((plane) => plane.events.map(({ name }) => name));
  return [
    compareEvents(events, declared.events),
    compareFields(events, declared.events),
    compareAssumed(
      events,
      declared.events,
      ours.flatMap(({ consumed }) => consumed),
    ),
    ...planes.map(({ plane, commands }) => {
      const isOurs = plane === OUR_PLANE;
      const inPlane = declared.commands.filter(({ service }) => ourServices.has(service) === isOurs);
      return compareCommands(plane, commands, inPlane, isOurs);
    }),
    compareSubscriptions(subscriptions, declared.subscriptions, beyondPages),
    compareBeyondPages(subscriptions, declared.subscriptions, beyondPages),
    compareSources(declared.subscriptions, declared.events, eventsOfOtherPlanes),
    compareAnnouncements(ourEvents, found.announced),
    compareDelivered(
      declared.events.map(({ name }) => name),
      found.delivered,
    ),
    compareHandlers(ourSubscriptions, handlers),
    compareTests(handlers, found.testTitles),
  ];
}
