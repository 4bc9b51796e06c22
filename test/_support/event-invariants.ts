import { eventCatalogue, eventOnTopic } from "@runtime-cloud/contracts/events/event-catalogue";
import type { Audience } from "@runtime-cloud/runtime-cloud-host/story/audience";
import type pg from "pg";

/*
 * What the event path promises, whatever happens to its parts. Each check names what breaks its promise, so that a test
 * expects [] of it, once the faults are over and the path has caught up.
 */

/** Every event of an outbox is published. */
export async function unpublished(outbox: pg.Pool): Promise<string[]> {
  const { rows } = await outbox.query<OutboxEvent>(`${EVENTS} WHERE published_at IS NULL`);
  return rows.map((event) => `${named(event)} is not published`);
}

/** Every event of an outbox has reached a subscriber, `heard` being the ids of those that did. */
export async function unheard(outbox: pg.Pool, subscriber: string, heard: ReadonlySet<string>): Promise<string[]> {
  const { rows } = await outbox.query<OutboxEvent>(EVENTS);
  const owed = rows.filter(({ topic }) => eventOnTopic(topic)?.consumers.includes(subscriber));
  return owed.filter(({ id }) => !heard.has(id)).map((event) => `${named(event)} never reached ${subscriber}`);
}

/** The ids of all that an audience has heard. */
export function heardBy(audience: Audience): Set<string> {
  return new Set(eventCatalogue.flatMap(({ name }) => audience.heard(name, () => true).map(({ id }) => id)));
}

/**
 * A handler has taken in each of the events once, and had its effect once: `effects` are the events' ids as often as
 * they had it, where that can be counted.
 */
export async function notTakenOnce(database: pg.Pool, { handler, events, effects = events }: Taken): Promise<string[]> {
  const receipts = await database.query<{ id: string }>("SELECT event_id AS id FROM inbox_receipt WHERE handler = $1", [
    handler,
  ]);
  return [
    ...unlessOnce(
      receipts.rows.map(({ id }) => id),
      events,
      `receipts of ${handler}`,
    ),
    ...unlessOnce(effects, events, `effects of ${handler}`),
  ];
}

/** No event or request caused the same transition of the same aggregate twice. */
export async function causedTwice(database: pg.Pool): Promise<string[]> {
  const { rows } = await database.query<{ cause: string; what: string; times: number }>(
    `SELECT causation_id AS cause, concat_ws(' ', aggregate, aggregate_id, event) AS what, count(*)::int AS times
     FROM transition WHERE causation_id IS NOT NULL
     GROUP BY causation_id, actor, aggregate, aggregate_id, event HAVING count(*) > 1`,
  );
  return rows.map(({ cause, what, times }) => `event ${cause} caused ${what} ${times} times`);
}

/** Of every aggregate in an outbox a subscriber ended up with the newest version, `seen` being what it has. */
export async function outdated(outbox: pg.Pool, seen: ReadonlyMap<string, number>): Promise<string[]> {
  const { rows } = await outbox.query<{ subject: string; version: number }>(
    `SELECT subject, max((envelope->>'aggregateversion')::int) AS version FROM outbox_message GROUP BY subject`,
  );
  return rows
    .filter(({ subject, version }) => seen.get(subject) !== version)
    .map(({ subject, version }) => `${subject} is seen at version ${seen.get(subject) ?? "none"}, not at ${version}`);
}

function unlessOnce(found: readonly string[], expected: readonly string[], what: string): string[] {
  const times = new Map<string, number>(expected.map((id) => [id, 0]));
  for (const id of found) times.set(id, (times.get(id) ?? 0) + 1);
  return [...times].filter(([, count]) => count !== 1).map(([id, count]) => `event ${id} has ${count} ${what}`);
}

function named({ id, topic }: OutboxEvent): string {
  return `event ${id} (${topic})`;
}

const EVENTS = "SELECT id, topic FROM outbox_message";

interface Taken {
  handler: string;
  events: readonly string[];
  effects?: readonly string[];
}

interface OutboxEvent {
  id: string;
  topic: string;
}
