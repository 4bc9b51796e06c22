import { mkdir, rename, rm, symlink, unlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { knownClusters } from "@runtime-cloud/runtime-environment/observers/kubernetes/kubernetes-clusters";
import { kubeObjectOf } from "../_support/kube-objects.ts";
import { type KubernetesSide, startKubernetesSide } from "./kubernetes-side.ts";

const SERVICE_ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount";

let side: KubernetesSide;
beforeAll(async () => {
  side = await startKubernetesSide();
  side.server.store.put(kubeObjectOf("Deployment"));
});
afterAll(() => side.close());
afterEach(() => write("main.kubeconfig", side.server.kubeconfig()));

describe("the clusters of an installation", () => {
  test("are its kubeconfigs by name, those of the tenant's own folder among them", async () => {
    await write("east.yaml", "");
    await write("readme.txt", "");
    await write("Upper.yaml", "");
    await mkdir(join(side.folder, "tenant-1"));
    await write("tenant-1/private.kubeconfig", "");
    const known = (tenantId: string) => knownClusters({ CLUSTERS_DIR: side.folder }, tenantId, side.folder);
    expect(await known("tenant-1")).toEqual(["east", "main", "private"]);
    expect(await known("tenant-2")).toEqual(["east", "main"]);
    expect(await known("../clusters")).toEqual(["east", "main"]);
  });

  test("are none where no folder is set", async () => {
    expect(await knownClusters({}, "tenant-1", side.folder)).toEqual([]);
  });

  test("are another tenant's only by what all share", async () => {
    await write("tenant-1/private.kubeconfig", side.server.kubeconfig());
    expect(await problem("private", "tenant-1")).toBeUndefined();
    expect(await problem("private", "tenant-2")).toBe('there is no cluster "private"');
    expect(await problem("../main", "tenant-1")).toBe('there is no cluster "../main"');
  });
});

describe("the cluster that the service runs in", () => {
  afterEach(() => rm(join(side.folder, "var"), { recursive: true }));

  test("is known by its service account, and asked by the token that is there now", async () => {
    await mkdir(join(side.folder, SERVICE_ACCOUNT), { recursive: true });
    await write(join(SERVICE_ACCOUNT, "ca.crt"), side.server.authority);
    await write(join(SERVICE_ACCOUNT, "token"), side.server.token);
    process.env["KUBERNETES_SERVICE_HOST"] = "127.0.0.1";
    process.env["KUBERNETES_SERVICE_PORT"] = String(side.server.port);
    expect(await knownClusters({}, "tenant-1", side.folder)).toEqual(["in-cluster"]);
    expect(await statusBy("in-cluster")).toBe(200);

    const before = side.server.token;
    side.server.token = "rotated";
    await write(join(SERVICE_ACCOUNT, "token"), "rotated");
    expect(await statusBy("in-cluster")).toBe(200);
    side.server.token = before;
    delete process.env["KUBERNETES_SERVICE_HOST"];
    delete process.env["KUBERNETES_SERVICE_PORT"];
  });

  test("can't be used elsewhere", async () => {
    await mkdir(join(side.folder, "var"));
    expect(await problem("in-cluster")).toBe("this service doesn't run in a cluster, or has no service account there");
  });
});

describe("a kubeconfig", () => {
  test("is read anew when it changes", async () => {
    expect(await statusBy("main")).toBe(200);
    const before = side.server.token;
    side.server.token = "rotated";
    expect(await statusBy("main")).toBe(401);
    await write("main.kubeconfig", side.server.kubeconfig());
    expect(await statusBy("main")).toBe(200);
    side.server.token = before;
  });

  test("is read anew when the link to it changes, as in a mounted Secret", async () => {
    const { server, folder } = side;
    const before = server.token;
    await write("v1", server.kubeconfig());
    server.token = "rotated";
    await write("v2", server.kubeconfig());
    for (const version of ["v1", "v2"]) await utimes(join(folder, version), 1, 1);
    await unlink(join(folder, "main.kubeconfig"));
    await symlink("v1", join(folder, "main.kubeconfig"));
    expect(await statusBy("main")).toBe(401);
    await symlink("v2", join(folder, "next"));
    await rename(join(folder, "next"), join(folder, "main.kubeconfig"));
    expect(await statusBy("main")).toBe(200);
    server.token = before;
    await unlink(join(folder, "main.kubeconfig"));
  });

  test("may name its token in a file, which is read anew when it changes", async () => {
    await write("main.kubeconfig", side.server.kubeconfig({ tokenFile: "token" }));
    await write("token", `${side.server.token}\n`);
    expect(await statusBy("main")).toBe(200);
    await write("token", "outdated");
    expect(await statusBy("main")).toBe(401);
  });

  test.each([
    [{ exec: { apiVersion: "client.authentication.k8s.io/v1", command: "touch", args: ["/tmp/ran"] } }, "exec"],
    [{ "auth-provider": { name: "gcp", config: { "cmd-path": "/bin/true" } } }, "auth-provider"],
  ])("that would run a program is refused: %j", async (user, what) => {
    await write("main.kubeconfig", side.server.kubeconfig(user));
    const text = `the kubeconfig's user has ${what}, and no program is run to look: use a token, a tokenFile or a client certificate`;
    expect(await problem("main")).toBe(text);
  });

  test("is refused in words that quote none of it", async () => {
    const secret = "s3cret";
    const whole = side.server.kubeconfig({ token: secret });
    const refusals = {
      [`{"current-context": "${secret}`]: "the kubeconfig is no YAML",
      [`- ${secret}`]: "the kubeconfig isn't one: look at all of it",
      [whole.replace("https://127.0.0.1", secret)]: "the kubeconfig isn't one: look at clusters.0.cluster.server",
      [whole.replace('"user":"observer"', `"user":"${secret}"`)]:
        "the kubeconfig doesn't hold the current context's user",
      [whole.replace("https://", "http://")]:
        "the kubeconfig's server has no TLS, and insecure-skip-tls-verify isn't set",
      [side.server.kubeconfig({ tokenFile: secret })]: "the kubeconfig's tokenFile can't be read (ENOENT)",
    };
    for (const [content, refusal] of Object.entries(refusals)) {
      await write("main.kubeconfig", content);
      expect(await problem("main")).toBe(refusal);
    }
  });

  test("whose authority didn't sign the cluster's certificate gets no answer, and sends no token", async () => {
    await write(
      "main.kubeconfig",
      side.server.kubeconfig().replace(/"certificate-authority-data":"[^"]*"/, '"insecure-skip-tls-verify":false'),
    );
    side.server.asked.length = 0;
    await expect(side.look()).rejects.toThrow("the cluster can't be asked: its certificate isn't trusted");
    expect(side.server.asked).toEqual([]);
  });
});

async function write(file: string, content: string): Promise<void> {
  await writeFile(join(side.folder, file), content);
}

async function problem(name: string, tenantId = "tenant-1"): Promise<string | undefined> {
  return side.kubernetes.clusters.problem(tenantId, name);
}

/** How the cluster answers to the credential that is had for it. */
async function statusBy(name: string): Promise<number | undefined> {
  const { connection } = await side.kubernetes.clusters.connect("tenant-1", name);
  const path = "/apis/apps/v1/namespaces/shop/deployments";
  const response = await connection.open(path, {}, new AbortController().signal);
  response.resume();
  return response.statusCode;
}
