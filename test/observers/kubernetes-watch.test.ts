import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { until } from "@runtime-cloud/local-servers/until";
import { kubeObjectOf } from "../_support/kube-objects.ts";
import { tooOld } from "../_support/kube-status.ts";
import { type KubernetesSide, startKubernetesSide } from "./kubernetes-side.ts";

const PATIENCE_MS = 10_000;
const KINDS = 3;

let side: KubernetesSide;
beforeEach(async () => {
  side = await startKubernetesSide({ maxScopes: 2 });
  side.server.store.put(kubeObjectOf("Deployment"));
});
afterEach(() => side.close());

describe("a change in a cluster", () => {
  test.each([
    ["is created", () => side.server.store.put(kubeObjectOf("StatefulSet"))],
    ["changes", () => side.server.store.put(kubeObjectOf("Deployment", { generation: 5 }))],
    ["is deleted", () => side.server.store.remove("Deployment", "shop-web")],
  ])("is told when a workload %s", async (_how, change) => {
    await side.look();
    await side.watched(KINDS);
    expect(side.told).toEqual([]);
    change();
    await told("environment-1");
  });

  test("is told once to each environment that looked, and again to those that looked again", async () => {
    await side.look("environment-1");
    await side.look("environment-2");
    await side.watched(KINDS);
    side.server.store.put(kubeObjectOf("Deployment", { generation: 5 }));
    side.server.store.put(kubeObjectOf("Deployment", { generation: 6 }));
    await told("environment-1", "environment-2");
    await side.look("environment-2");
    side.server.store.put(kubeObjectOf("Deployment", { generation: 7 }));
    await told("environment-1", "environment-2", "environment-2");
  });

  test("is told though it came between the list and the watch", async () => {
    side.server.fault = onceAsked("watch deployments", () => {
      side.server.store.put(kubeObjectOf("Deployment", { generation: 5 }));
    });
    await side.look();
    await told("environment-1");
  });

  test("of another namespace, or one that the label selector leaves out, isn't told", async () => {
    const place = { id: "environment-1", tenantId: "tenant-1" };
    const look = { cause: { actor: "test", correlationId: "test" }, timeoutMs: 10_000 };
    await side.observer("app.kubernetes.io/name=web").observe(place, look);
    await side.watched(KINDS);
    side.server.store.put(kubeObjectOf("StatefulSet"));
    side.server.store.put(kubeObjectOf("Deployment", { generation: 5 }));
    await told("environment-1");
    expect(side.server.asked.filter((asked) => asked.startsWith("watch"))).toHaveLength(KINDS);
  });
});

describe("a watch", () => {
  test("is shared by the environments of one scope", async () => {
    await Promise.all([side.look("environment-1"), side.look("environment-2"), side.look("environment-3")]);
    await side.watched(KINDS);
    expect(side.server.asked.filter((asked) => asked.startsWith("watch"))).toHaveLength(KINDS);
  });

  test("that is cut goes on where it was, and tells what came meanwhile", async () => {
    await side.look();
    await side.watched(KINDS);
    side.server.watches.cut();
    side.server.store.put(kubeObjectOf("Deployment", { generation: 5 }));
    await told("environment-1");
    await side.watched(KINDS);
    expect(side.server.asked.filter((asked) => asked === "list deployments")).toHaveLength(1);
  });

  test("goes on from its last bookmark, though the server has forgotten what came before", async () => {
    await side.look();
    await side.watched(KINDS);
    for (let number = 0; number < 5; number += 1) putElsewhere(number);
    side.server.watches.bookmark();
    side.server.store.compact();
    side.server.watches.end();
    await until("watches anew", PATIENCE_MS, () =>
      side.server.asked.filter((asked) => asked.startsWith("watch")).length === 2 * KINDS ? true : undefined,
    );
    await side.watched(KINDS);
    side.server.store.put(kubeObjectOf("Deployment", { generation: 5 }));
    await told("environment-1");
  });

  test("that the server has forgotten has its environments looked at, and is begun anew from their list", async () => {
    await side.look();
    await side.watched(KINDS);
    putElsewhere(1);
    side.server.store.compact();
    side.server.watches.cut();
    await told("environment-1");
    // Each kind finds out by itself.
    await until("watches from a new list", PATIENCE_MS, async () => {
      await side.look();
      return side.server.watches.open === KINDS ? true : undefined;
    });
    const before = side.told.length;
    side.server.store.put(kubeObjectOf("Deployment", { generation: 5 }));
    await until("the change told", PATIENCE_MS, () => (side.told.length > before ? true : undefined));
  });

  test("that is told so by an ERROR event ends in the same way", async () => {
    await side.look();
    await side.watched(KINDS);
    side.server.watches.fail(tooOld(1, 2));
    await told("environment-1");
    await side.look();
    await side.watched(KINDS);
  });

  test("that isn't allowed holds up no look, and is logged once without a secret", async () => {
    for (const resource of ["deployments", "statefulsets", "daemonsets"]) side.server.denied.add(`watch ${resource}`);
    expect((await side.look()).components).toHaveLength(1);
    await until("a second try", PATIENCE_MS, () =>
      side.server.asked.filter((asked) => asked === "watch deployments").length > 1 ? true : undefined,
    );
    const lines = side.logged.filter((line) => line.includes("deployments"));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("the cluster refused the watch (403)");
    expect(side.logged.join()).not.toContain(side.server.token);
  });

  test("goes by the credential that is rotated while it runs", async () => {
    await side.look();
    await side.watched(KINDS);
    side.server.token = "rotated";
    await writeFile(join(side.folder, "main.kubeconfig"), side.server.kubeconfig());
    side.server.watches.end();
    side.server.store.put(kubeObjectOf("Deployment", { generation: 5 }));
    await told("environment-1");
  });

  test("isn't opened for more scopes than a process may watch", async () => {
    const place = { id: "environment-1", tenantId: "tenant-1" };
    const look = { cause: { actor: "test", correlationId: "test" }, timeoutMs: 10_000 };
    for (const name of ["a", "b", "c"]) {
      const seen = await side.observer(`name!=${name}`).observe(place, look);
      expect(seen.components).toHaveLength(1);
    }
    await side.watched(2 * KINDS);
    expect(side.server.asked.filter((asked) => asked.startsWith("watch"))).toHaveLength(2 * KINDS);
  });

  test("ends when the service stops, also one that the server leaves without an answer", async () => {
    side.server.fault = (asked) => asked.startsWith("watch");
    await side.look();
    await until("three watches asked for", PATIENCE_MS, () =>
      side.server.asked.filter((asked) => asked.startsWith("watch")).length === KINDS ? true : undefined,
    );
    const began = performance.now();
    await side.kubernetes.close();
    expect(performance.now() - began).toBeLessThan(2_000);
    side.server.fault = undefined;
    expect((await side.look()).components).toHaveLength(1);
  });
});

/** Resolves when these environments were told, and fails when others were. */
async function told(...environmentIds: string[]): Promise<void> {
  await until(`changes told to ${environmentIds.join(", ")}`, PATIENCE_MS, () =>
    side.told.length >= environmentIds.length ? true : undefined,
  );
  expect(side.told).toEqual(environmentIds);
}

/** Moves the cluster on where no watch looks. */
function putElsewhere(number: number): void {
  const object = kubeObjectOf("Deployment", { name: `elsewhere-${number}` });
  side.server.store.put({ ...object, metadata: { ...object.metadata, namespace: "default" } });
}

function onceAsked(what: string, act: () => void) {
  return (asked: string) => {
    if (asked === what) {
      side.server.fault = undefined;
      act();
    }
    return false;
  };
}
