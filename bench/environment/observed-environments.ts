import { deadlinesOf } from "@runtime-cloud/eventing/deadlines";
import { bucketOf, wakeUpJob } from "@runtime-cloud/eventing/wake-up";
import type { ObserverSettings } from "@runtime-cloud/runtime-environment/observers/observer-settings";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type pg from "pg";
import { committed } from "../events/committed.ts";
import type { EnvironmentServers } from "./environment-servers.ts";
import type { ObservingService } from "./observing-service.ts";
import { COMPONENT, componentUrls, REPLICAS, VERSION } from "./web-component.ts";

/** Environments with one component, which HTTP is asked for and an agent reports on; nothing is applied in them. */
export interface ObservedEnvironments {
  readonly ids: readonly string[];
  readonly observeSeconds: number;
}

/** A silence of so many intervals makes an environment stale. */
const STALE_AFTER_INTERVALS = 5;
const HTTP_TIMEOUT_MS = 5_000;

/**
 * Adds environments as both services have them that were looked at once, all well. Their next looks lie evenly in the
 * interval that begins now, and the service is woken for them as for those that it schedules itself.
 */
export async function addObservedEnvironments(
  { provisioning, endpoints }: EnvironmentServers,
  { aside, queues, tenantId }: ObservingService,
  { count, observeSeconds }: { count: number; observeSeconds: number },
): Promise<ObservedEnvironments> {
  const ids = Array.from({ length: count }, () => uuidv7());
  const projectId = uuidv7();
  await provisioning.aside.query(
    "INSERT INTO environment (id, tenant_id, project_id, class) SELECT id, $2, $3, 'STAGING' FROM unnest($1::text[]) AS id",
    [ids, tenantId, projectId],
  );
  const observers = ids.map((_, place) => JSON.stringify(observersOf(endpoints.url, place)));
  await committed(aside, async (client) => {
    await client.query(INVENTORIES, [ids, observers, tenantId, projectId, observeSeconds, STALE_AFTER_INTERVALS]);
    await client.query(REPORTS, [ids]);
    await client.query(COMPONENTS, [ids, COMPONENT, VERSION, REPLICAS]);
    await client.query(FIRST_SIGHTS, [ids, count]);
    await client.query(HISTORY, [ids]);
  });
  await aside.query("VACUUM ANALYZE");
  await wakeFor(queues, aside, ids);
  return { ids, observeSeconds };
}

function observersOf(endpointsUrl: string, place: number): ObserverSettings {
  const component = { name: COMPONENT, ...componentUrls(endpointsUrl, place), versionField: "" };
  return { http: { components: [component], timeoutMs: HTTP_TIMEOUT_MS }, push: { agents: [] } };
}

const INVENTORIES = `
  INSERT INTO inventory
    (id, state, tenant_id, project_id, class, observe_at, observe_seconds, stale_after_seconds, observers)
  SELECT id, 'UNOBSERVED', $3, $4, 'STAGING', now() + interval '1 day', $5::int, $5::int * $6::int, observers
  FROM unnest($1::text[], $2::jsonb[]) AS given (id, observers)`;

const REPORTS = `
  INSERT INTO observer_report (inventory_id, observer, observed_at)
  SELECT id, observer, now() FROM unnest($1::text[]) AS id, unnest(ARRAY['engine', 'http', 'push']) AS observer`;

const COMPONENTS = `
  INSERT INTO component
    (inventory_id, observer, name, component_version, replicas_desired, replicas_ready, health)
  SELECT id, observer, $2, $3, replicas, replicas, 'HEALTHY'
  FROM unnest($1::text[]) AS id, (VALUES ('http', 0), ('push', $4::int)) AS seen (observer, replicas)`;

const FIRST_SIGHTS = `
  UPDATE inventory
  SET state = 'FRESH', version = 1, health = 'HEALTHY', observed_at = now(),
    stale_at = now() + make_interval(secs => stale_after_seconds),
    observe_at = statement_timestamp() + (place - 1) / $2::float8 * make_interval(secs => observe_seconds)
  FROM unnest($1::text[]) WITH ORDINALITY AS given (id, place)
  WHERE inventory.id = given.id`;

const HISTORY = `
  INSERT INTO transition
    (aggregate, aggregate_id, tenant_id, version, from_state, event, to_state, actor, correlation_id)
  SELECT 'RuntimeInventory', id, tenant_id, edge.version, edge.from_state, edge.event, edge.to_state, 'bench', id
  FROM inventory, (VALUES
    (0, '[*]', 'create', 'UNOBSERVED'), (1, 'UNOBSERVED', 'observe', 'FRESH')
  ) AS edge (version, from_state, event, to_state)
  WHERE id = ANY($1::text[])`;

async function wakeFor(queues: ObservingService["queues"], aside: pg.Pool, ids: readonly string[]): Promise<void> {
  const { rows } = await aside.query<{ observeAt: Date }>(
    'SELECT observe_at AS "observeAt" FROM inventory WHERE id = ANY($1::text[])',
    [ids],
  );
  const seconds = new Set(rows.map(({ observeAt }) => bucketOf(observeAt).getTime()));
  const now = systemClock.now().getTime();
  const wakeUps = [...seconds].map((second) => wakeUpJob("observation", new Date(second), Math.max(0, second - now)));
  await queues.add(deadlinesOf("runtime-environment"), wakeUps);
}
