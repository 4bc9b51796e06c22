import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { ObservationFailed } from "@runtime-cloud/runtime-environment/observers/observer";
import { kubeObjectOf } from "../_support/kube-objects.ts";
import { answerStatus, expiredContinue } from "../_support/kube-status.ts";
import { type KubernetesSide, startKubernetesSide } from "./kubernetes-side.ts";

let side: KubernetesSide;
beforeAll(async () => {
  side = await startKubernetesSide();
});
afterAll(() => side.close());
beforeEach(() => {
  side.server.store.clear();
  side.server.fault = undefined;
  side.server.denied.clear();
  side.server.namespaces.add("shop");
  side.server.asked.length = 0;
});

describe("components", () => {
  const namesSeen = async () => (await side.look()).components.map(({ name }) => name);

  test("are called as their label says, or by their own name", async () => {
    side.server.store.put(kubeObjectOf("Deployment"), kubeObjectOf("Deployment", { name: "plain", labels: {} }));
    expect((await namesSeen()).sort()).toEqual(["plain", "web"]);
  });

  test("keep their name when a newer workload comes with the same label", async () => {
    const canary = { name: "shop-canary", createdAt: "2026-04-01T08:00:00Z" };
    side.server.store.put(kubeObjectOf("Deployment", canary), kubeObjectOf("Deployment"));
    expect(await namesSeen()).toEqual(["web", "shop-canary"]);
  });

  test("of several kinds and one name are told apart by their kind", async () => {
    const agent = { name: "agent", labels: {} };
    side.server.store.put(
      kubeObjectOf("Deployment", { ...agent, createdAt: "2026-03-01T00:00:00Z" }),
      kubeObjectOf("DaemonSet", agent),
    );
    expect(await namesSeen()).toEqual(["agent", "daemonset/agent"]);
  });

  test("have the version of their label, of their image's tag, or of its digest", async () => {
    const container = (image: string) => ({ template: { spec: { containers: [{ name: "web", image }] } } });
    const versions = {
      "registry.example.com:5000/shop/web:2.0.0-rc.1": "2.0.0-rc.1",
      "registry.example.com:5000/shop/web": "latest",
      "web@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef": "0123456789ab",
    };
    const seen: Record<string, string | undefined> = {};
    for (const image of Object.keys(versions)) {
      side.server.store.put(kubeObjectOf("Deployment", { labels: {}, spec: container(image) }));
      seen[image] = (await side.look()).components[0]?.componentVersion;
    }
    expect(seen).toEqual(versions);
    side.server.store.put(kubeObjectOf("Deployment"));
    expect((await side.look()).components[0]?.componentVersion).toBe("1.4.2");
  });

  test("have the version of the container that their pods are about, where it isn't the first", async () => {
    const containers = [
      { name: "proxy", image: "envoy:1.30" },
      { name: "web", image: "web:7" },
    ];
    const annotations = { "kubectl.kubernetes.io/default-container": "web" };
    const spec = { template: { metadata: { annotations }, spec: { containers } } };
    side.server.store.put(kubeObjectOf("Deployment", { labels: {}, spec }));
    expect((await side.look()).components[0]?.componentVersion).toBe("7");
  });

  test("are those that the label selector chooses", async () => {
    side.server.store.put(kubeObjectOf("Deployment"), kubeObjectOf("StatefulSet"));
    const place = { id: "environment-1", tenantId: "tenant-1" };
    const chosen = await side.observer("app.kubernetes.io/name=database").observe(place, look());
    expect(chosen.components.map(({ name }) => name)).toEqual(["database"]);
  });
});

describe("lists", () => {
  test("are read page by page", async () => {
    putDeployments(250);
    expect((await side.look()).components).toHaveLength(250);
    expect(side.server.asked.filter((asked) => asked === "list deployments")).toHaveLength(3);
  });

  test("that the server forgets halfway are begun anew", async () => {
    putDeployments(150);
    let forgotten = 0;
    side.server.fault = (asked) => {
      if (asked === "list deployments" && side.server.asked.length > 1 && forgotten === 0) {
        forgotten += 1;
        side.server.store.expireLists();
      }
      return false;
    };
    expect((await side.look()).components).toHaveLength(150);
    expect(forgotten).toBe(1);
  });

  test("that the server forgets again and again make the look fail in part, in time", async () => {
    side.server.store.put(kubeObjectOf("StatefulSet"));
    side.server.fault = (asked, response) => {
      if (asked !== "list deployments") return false;
      answerStatus(response, expiredContinue);
      return true;
    };
    const { components, failure } = await side.look();
    expect(components.map(({ name }) => name)).toEqual(["database"]);
    expect(failure).toBe("the cluster forgot a list of deployments while it was read, twice (410)");
    expect(side.server.asked.filter((asked) => asked === "list deployments")).toHaveLength(2);
  });

  test("of more workloads than an observation holds say so", async () => {
    putDeployments(510);
    const { components, failure } = await side.look();
    expect(components).toHaveLength(500);
    expect(failure).toBe("namespace shop has more than 500 workloads: choose some by a label selector");
  });
});

describe("a look that fails", () => {
  test("tells which permission is missing, and nothing that the cluster wrote", async () => {
    for (const resource of ["deployments", "statefulsets", "daemonsets"]) side.server.denied.add(`list ${resource}`);
    expect(await failureOf(side.look())).toBe(
      "the cluster refused this service's credential (403): it needs list on deployments, statefulsets and " +
        "daemonsets in namespace shop",
    );
  });

  test("sees the other kinds when one is refused", async () => {
    side.server.store.put(kubeObjectOf("Deployment"), kubeObjectOf("DaemonSet"));
    side.server.denied.add("list daemonsets");
    const { components, failure } = await side.look();
    expect(components.map(({ name }) => name)).toEqual(["web"]);
    expect(failure).toContain("(403)");
  });

  test("tells of a credential that the cluster doesn't know", async () => {
    const { token } = side.server;
    side.server.token = "another";
    const failure = await failureOf(side.look());
    side.server.token = token;
    expect(failure).toBe("the cluster doesn't know this service's credential (401): renew its kubeconfig");
    expect(side.logged.join()).not.toContain(token);
  });

  test("tells of a namespace that isn't there, which a cluster lists as empty", async () => {
    expect((await side.look()).components).toEqual([]);
    side.server.namespaces.delete("shop");
    expect(await failureOf(side.look())).toBe("the cluster has no namespace shop");
  });

  test("takes an empty namespace for empty when it may not ask whether it is there", async () => {
    side.server.denied.add("get namespaces");
    expect(await side.look()).toMatchObject({ components: [] });
  });

  test.each([
    [500, "the cluster failed (500)"],
    [429, "the cluster has too much to do (429)"],
    [302, "the cluster refused to list deployments (302)"],
  ])("tells of an answer with status %i", async (status, text) => {
    side.server.fault = (asked, response) => {
      response.writeHead(status, { location: "https://elsewhere.example.com/" }).end("secret internals");
      return true;
    };
    expect(await failureOf(side.look())).toContain(text);
    expect(await failureOf(side.look())).not.toContain("internals");
  });

  test.each([
    ["breaks off", '{"kind":"DeploymentList","items":[{"metadata":', 4_000],
    ["isn't JSON", "<html>sign in</html>", undefined],
    ["is another object", '{"kind":"Status","status":"Success"}', undefined],
    ["has no items", '{"kind":"DeploymentList","metadata":{"resourceVersion":"1"}}', undefined],
  ])("tells of a list that %s, and never makes it an empty one", async (_how, body, length) => {
    side.server.fault = (_asked, response) => {
      response.writeHead(200, {
        "content-type": "application/json",
        ...(length !== undefined && { "content-length": length }),
      });
      response.write(body, () => (length === undefined ? response.end() : response.destroy()));
      return true;
    };
    const failure = await failureOf(side.look());
    expect(failure).toMatch(/what is no list of deployments|the connection was cut/);
  });
});

function look() {
  return { cause: { actor: "test", correlationId: "test" }, timeoutMs: 10_000 };
}

function putDeployments(count: number): void {
  for (let number = 0; number < count; number += 1) {
    side.server.store.put(kubeObjectOf("Deployment", { name: `web-${number}`, labels: {} }));
  }
}

async function failureOf(looking: Promise<unknown>): Promise<string> {
  const failure = await looking.then(
    () => new Error("the look has succeeded"),
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(ObservationFailed);
  return failure instanceof Error ? failure.message : "";
}
