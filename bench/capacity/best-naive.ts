import type { BenchServers } from "../servers.ts";
import type { LeasePath } from "./lease-path.ts";
import { openNaivePath } from "./naive-path.ts";
import { pairs } from "./pairs.ts";

const CONNECTIONS = [8, 16, 32] as const;

/** With as many connections as it is fastest with here: each number is tried once. */
export async function openBestNaivePath(servers: BenchServers, callers: number, seconds: number): Promise<LeasePath> {
  const tried: { path: LeasePath; perSecond: number }[] = [];
  for (const connections of CONNECTIONS) {
    const path = await openNaivePath(await servers.emptyDatabase(`naive_${connections}`), connections);
    const { figures, check } = await pairs(path, { callers, seconds }).round();
    await check();
    tried.push({ path, perSecond: figures["pairs_per_second"] ?? 0 });
  }
  const [best, ...others] = tried.sort((one, other) => other.perSecond - one.perSecond);
  for (const { path } of others) await path.close();
  if (best === undefined) throw new Error("no number of connections was tried");
  return { ...best.path, about: `${best.path.about}, the best of ${CONNECTIONS.join(", ")}` };
}
