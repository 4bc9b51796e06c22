import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { InvalidInput } from "@runtime-cloud/service-kit/errors";
import type { Inventory } from "../generated/prisma/client.ts";
import type { Context, ServiceUnit } from "./context.ts";
import { transactionNow, secondsAfter } from "@runtime-cloud/eventing/database-clock";

/** How often an environment is observed, when it counts as stale, and when proposals are made by themselves. */
export type Configuration = Pick<Inventory, "observeSeconds" | "staleAfterSeconds" | "proposeAfterSeconds">;

/** The configuration in a request. Throws InvalidInput when the environment would be stale between two looks. */
export function configurationOf({ observeEvery, staleAfter, proposeAfter }: Request): Configuration {
  const observeSeconds = secondsOf(observeEvery);
  const staleAfterSeconds = secondsOf(staleAfter);
  if (staleAfterSeconds > observeSeconds) {
    return { observeSeconds, staleAfterSeconds, proposeAfterSeconds: proposeAfter ? secondsOf(proposeAfter) : null };
  }
  const description = `must be longer than observeEvery (${observeSeconds} s), or the environment is stale between two looks`;
  throw new InvalidInput([{ field: "staleAfter", description }]);
}

/** Configures an environment, which must be locked; what was seen last is fresh for as long as it says from now on. */
export async function configure(
  unit: ServiceUnit,
  context: Context,
  { id, state, ...inventory }: Inventory,
  configuration: Configuration,
): Promise<Inventory> {
  const { observeSeconds, staleAfterSeconds } = configuration;
  const observeAt = secondsAfter(await transactionNow(unit.tx), observeSeconds);
  const seenAt = state === "FRESH" ? inventory.observedAt : null;
  const staleAt = seenAt ? secondsAfter(seenAt, staleAfterSeconds) : inventory.staleAt;
  unit.after(() => context.arm("observation", observeAt));
  if (staleAt) unit.after(() => context.arm("staleness", staleAt, { environmentId: id }));
  return unit.tx.inventory.update({ where: { id }, data: { ...configuration, observeAt, staleAt } });
}

function secondsOf(duration: Duration | undefined): number {
  return duration ? Math.ceil(durationMs(duration) / 1_000) : 0;
}

interface Request {
  observeEvery?: Duration | undefined;
  staleAfter?: Duration | undefined;
  proposeAfter?: Duration | undefined;
}
