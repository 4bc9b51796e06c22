import { until } from "@runtime-cloud/local-servers/until";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { Etcd3 } from "etcd3";
import type { Contestant, Round } from "../rounds.ts";
import { eachOf, numbers } from "./each-of.ts";
import type { EtcdServer } from "./etcd-server.ts";
import { fullSecondAfter, reach } from "./instants.ts";
import type { StormSizes } from "./storm.ts";

const PREFIX = Buffer.from("storm/");
/** All keys that begin with the prefix lie before it. */
const PREFIX_END = Buffer.from("storm0");
const CALLS_AT_ONCE = 64;
/** How many tell what one takes. */
const TRIED = 256;
const TRIED_TTL_SECONDS = 600;
/** No lease may be due before the last one's key is there, however busy the machine becomes. */
const MARGIN = 3;
const SECOND_MS = 1_000;
/** It prolongs shorter ones. */
const SHORTEST_TTL_MS = 3_000;
const ALL_GONE_WITHIN_MS = 60_000;

/** Leases with a key each, due within one second; those that are left at its end count, from then on. */
export function stormOfEtcd({ url }: EtcdServer, { leases }: StormSizes): Contestant {
  return { name: "etcd", round: () => play(url, leases.etcd) };
}

async function play(url: string, count: number): Promise<Round> {
  const client = new Etcd3({ hosts: url });
  try {
    const due = fullSecondAfter(SHORTEST_TTL_MS + MARGIN * count * (await msPerLease(client)));
    await eachOf(numbers(count), CALLS_AT_ONCE, (place) =>
      hold(client, place, Math.floor((due.getTime() - systemClock.now().getTime()) / SECOND_MS)),
    );
    if (due.getTime() - systemClock.now().getTime() < SECOND_MS) throw new Error("etcd's leases took too long to make");
    const held = await keys(client);
    const dueAt = await reach(due);
    const left = await keys(client);
    await until("etcd's last key to go", ALL_GONE_WITHIN_MS, async () => (await keys(client)) === 0 || undefined);
    const seconds = (performance.now() - dueAt) / SECOND_MS;
    return {
      figures: { expired_per_second: left / seconds },
      async check() {
        if (held !== count) throw new Error(`etcd held ${held} keys of ${count}`);
      },
    };
  } finally {
    client.close();
  }
}

async function hold({ leaseClient, kv }: Etcd3, place: number, TTL: number): Promise<string> {
  const { ID } = await leaseClient.leaseGrant({ TTL });
  await kv.put({ key: Buffer.from(`storm/${place}`), value: Buffer.from("held"), lease: ID });
  return ID;
}

async function msPerLease(client: Etcd3): Promise<number> {
  const leases: string[] = [];
  const start = performance.now();
  await eachOf(numbers(TRIED), CALLS_AT_ONCE, async (place) =>
    leases.push(await hold(client, place, TRIED_TTL_SECONDS)),
  );
  const ms = performance.now() - start;
  await eachOf(leases, CALLS_AT_ONCE, (ID) => client.leaseClient.leaseRevoke({ ID }));
  return ms / TRIED;
}

async function keys({ kv }: Etcd3): Promise<number> {
  const { count } = await kv.range({ key: PREFIX, range_end: PREFIX_END, count_only: true });
  return Number(count);
}
