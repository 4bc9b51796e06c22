import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { Etcd3 } from "etcd3";
import project from "../../package.json" with { type: "json" };
import type { EtcdServer } from "./etcd-server.ts";
import { HOT_SCOPE } from "./hot-scope.ts";
import type { LeasePath } from "./lease-path.ts";

const { tenantId, holderKind, ttlSeconds } = HOT_SCOPE;
const HOLDERS = `holders/${tenantId}/${holderKind}/`;

/**
 * What locks and elections over etcd do: a lease is granted, the holder's key is created under it unless it is there,
 * and revoking the lease removes the key. It counts against no limit.
 */
export async function openEtcdPath({ url, version }: EtcdServer): Promise<LeasePath> {
  const client = new Etcd3({ hosts: url });
  let revision = await revisionOf(client);

  return {
    name: "etcd",
    about: `${version}, one member, its defaults, by etcd3 ${project.devDependencies.etcd3}: grant, create-if-absent transaction, revoke; no limit is counted`,
    async acquire() {
      const { ID: leaseId } = await client.leaseClient.leaseGrant({ TTL: ttlSeconds });
      const key = `${HOLDERS}${uuidv7()}`;
      const created = client.if(key, "Create", "==", 0).then(client.put(key).value(leaseId).lease(leaseId));
      const { succeeded, header } = await created.commit();
      if (!succeeded) throw new Error(`${key} is there already`);
      return {
        token: BigInt(header.revision),
        async release() {
          await client.leaseClient.leaseRevoke({ ID: leaseId });
        },
      };
    },
    async check(pairs) {
      const { leases } = await client.leaseClient.leaseLeases();
      const held = await client.getAll().prefix(HOLDERS).count();
      if (held !== 0 || leases.length !== 0) throw new Error(`${held} keys and ${leases.length} leases are left`);
      // A key that comes is a revision, and so is one that goes.
      const changes = (await revisionOf(client)) - revision;
      if (changes !== BigInt(2 * pairs)) throw new Error(`${changes} keys came or went for ${pairs} pairs`);
      revision += changes;
    },
    close: async () => client.close(),
  };
}

async function revisionOf(client: Etcd3): Promise<bigint> {
  const { header } = await client.getAll().prefix(HOLDERS).limit(1).exec();
  return BigInt(header.revision);
}
