import { type BenchServers, withServers } from "../servers.ts";
import { type EtcdServer, openEtcd } from "./etcd-server.ts";

/** What the parts of the capacity benchmark share. */
export interface CapacityServers extends BenchServers {
  /** Undefined where it can't be had: its contestants and ratios are left out. */
  readonly etcd: EtcdServer | undefined;
}

export function withCapacityServers<T>(
  log: (line: string) => void,
  work: (servers: CapacityServers) => Promise<T>,
): Promise<T> {
  return withServers(async (servers) => {
    const etcd = await openEtcd(log);
    try {
      return await work({ ...servers, etcd });
    } finally {
      await etcd?.stop();
    }
  });
}
