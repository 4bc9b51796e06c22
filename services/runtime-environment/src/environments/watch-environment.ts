import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeEnvironmentService } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/runtime_environment_service_pb";
import { watcherLimit } from "@runtime-cloud/eventing/event-log/watcher-limit";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { transact } from "@runtime-cloud/service-kit/transact";
import type { Inventory } from "../../generated/prisma/client.ts";
import type { Context, Tx } from "../context.ts";
import { readEnvironment } from "./environment-message.ts";
import type { EnvironmentNews } from "./environment-news.ts";
import { unknownEnvironment } from "../inventory/inventory.ts";
import { inventoryChangeMessage } from "../inventory/inventory-change-message.ts";
import { changesAfter, type KnownChange } from "../inventory/inventory-change-pages.ts";
import type { Place } from "../observers/observer.ts";

/**
 * WatchEnvironment: the environment as it is, then each change of it, in order and without a gap; it ends with the
 * environment. With `after_revision` it goes on after that revision, and begins with the environment as it is only when
 * changes in between aren't kept any more: so does a reader that is so slow that they went meanwhile. A slow reader
 * costs one page. Throws NotFound for another tenant's environment, Exhausted when the process has all the watchers that
 * it may have.
 */
export function watchEnvironment(
  context: Context,
  news: EnvironmentNews,
): ServiceImpl<typeof RuntimeEnvironmentService>["watchEnvironment"] {
  const { client } = context;
  const watchers = watcherLimit();

  return async function* ({ environmentId, afterRevision }, call) {
    const place = { id: environmentId, tenantId: principalOf(call).tenantId };
    const leave = watchers.enter(call.signal);
    try {
      let { state, revision } = await findEnvironment(client, place);
      let told = afterRevision;
      for (;;) {
        const changes = told === undefined ? undefined : await changesBetween(client, place.id, told, revision);
        if (changes) {
          for (const change of changes) {
            yield { update: { case: "change" as const, value: inventoryChangeMessage(change) } };
            told = change.revision;
          }
        } else {
          const seen = await snapshot(context, place);
          yield { update: { case: "snapshot" as const, value: seen.environment } };
          told = seen.revision;
        }
        if (told === undefined || told < revision) continue;
        if (state === "RETIRED") return;
        const glimpse = await news.next(newsAfter(place.id, told), call.signal);
        if (!glimpse) return;
        ({ state, revision } = glimpse);
      }
    } finally {
      leave();
    }
  };
}

async function findEnvironment(tx: Tx, place: Place): Promise<Inventory> {
  const inventory = await tx.inventory.findFirst({ where: place });
  if (!inventory) throw unknownEnvironment(place.id);
  return inventory;
}

/** The environment as of one revision. */
function snapshot({ client, clock }: Context, place: Place) {
  const read = async (tx: Tx) => {
    const inventory = await findEnvironment(tx, place);
    return { revision: inventory.revision, environment: await readEnvironment(tx, inventory, clock.now()) };
  };
  return transact(client, read, { isolationLevel: "RepeatableRead" });
}

/** Of one page. */
const MAX_PAGE_CHANGES = 100;

/**
 * The changes that follow revision `told`, as far as they come one after the other; none when it is the newest. Undefined
 * when the next one isn't kept, or was never there.
 */
async function changesBetween(
  tx: Tx,
  environmentId: string,
  told: bigint,
  newest: bigint,
): Promise<KnownChange[] | undefined> {
  if (told === newest) return [];
  const { changes } = await changesAfter(tx, { environmentId, after: told, size: MAX_PAGE_CHANGES });
  const gap = changes.findIndex(({ revision }, index) => revision !== told + BigInt(index + 1));
  const unbroken = gap === -1 ? [...changes] : changes.slice(0, gap);
  return unbroken.length > 0 ? unbroken : undefined;
}

/** A retirement is news by itself, so that whoever has heard of it already isn't kept waiting. */
function newsAfter(id: string, told: bigint) {
  return {
    id,
    isNews: ({ revision, state }: Pick<Inventory, "revision" | "state">) => revision > told || state === "RETIRED",
  };
}
