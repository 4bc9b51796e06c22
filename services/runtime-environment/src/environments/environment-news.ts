import { type News, type NewsWanted, polledNews } from "@runtime-cloud/eventing/polled-news";
import type { InventoryState } from "../../generated/prisma/client.ts";
import type { Context } from "../context.ts";

/** How an environment stands, as far as those who follow it need to know before they read more. */
export interface EnvironmentGlimpse {
  revision: bigint;
  state: InventoryState;
}

/** What becomes of environments, whichever process observes them. */
export type EnvironmentNews = News<EnvironmentGlimpse, NewsWanted<EnvironmentGlimpse>>;

export function openEnvironmentNews({ client, logger }: Pick<Context, "client" | "logger">): EnvironmentNews {
  return polledNews({
    followed: "environments",
    logger,
    async look(asked) {
      const ids = [...new Set(asked.map(({ id }) => id))];
      const rows = await client.inventory.findMany({
        where: { id: { in: ids } },
        select: { id: true, revision: true, state: true },
      });
      return new Map(rows.map(({ id, ...glimpse }) => [id, glimpse]));
    },
  });
}
