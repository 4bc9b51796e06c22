import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Cluster, User } from "@kubernetes/client-node";
import { parse } from "yaml";
import { z } from "zod";
import { ObservationFailed } from "../observer.ts";

/** What a kubeconfig's current context names, its files read in. */
export interface Kubeconfig {
  cluster: Cluster;
  user: User;
  /** All that was read: what changes when a certificate or token is rotated. */
  files: readonly string[];
}

const text = z.string().min(1);
const schema = z.object({
  "current-context": text,
  contexts: z.array(z.object({ name: text, context: z.object({ cluster: text, user: text }) })),
  clusters: z.array(
    z.object({
      name: text,
      cluster: z.object({
        server: z.url({ protocol: /^https?$/ }),
        "certificate-authority": text.optional(),
        "certificate-authority-data": text.optional(),
        "insecure-skip-tls-verify": z.boolean().optional(),
        "tls-server-name": text.optional(),
        "proxy-url": text.optional(),
      }),
    }),
  ),
  users: z.array(
    z.object({
      name: text,
      user: z.object({
        token: text.optional(),
        tokenFile: text.optional(),
        "client-certificate": text.optional(),
        "client-certificate-data": text.optional(),
        "client-key": text.optional(),
        "client-key-data": text.optional(),
        username: text.optional(),
        password: text.optional(),
        as: text.optional(),
        exec: z.unknown().optional(),
        "auth-provider": z.unknown().optional(),
      }),
    }),
  ),
});

/**
 * Reads a kubeconfig. The client's own reader leaves `tokenFile` out, runs the programs that a kubeconfig names, and
 * quotes the file in its errors. Throws ObservationFailed, with a text that quotes nothing.
 */
export async function readKubeconfig(file: string): Promise<Kubeconfig> {
  const content = await readText(file, "the kubeconfig");
  const parsed = schema.safeParse(yamlIn(content));
  if (!parsed.success) {
    const places = parsed.error.issues.map(({ path }) => path.join(".") || "all of it");
    throw new ObservationFailed(`the kubeconfig isn't one: look at ${[...new Set(places)].slice(0, 3).join(", ")}`);
  }
  return currentOf(parsed.data, dirname(file), file);
}

async function currentOf(config: z.output<typeof schema>, folder: string, file: string): Promise<Kubeconfig> {
  const context = named(config.contexts, config["current-context"], "the current context").context;
  const { cluster } = named(config.clusters, context.cluster, "the current context's cluster");
  const { user } = named(config.users, context.user, "the current context's user");
  if (cluster.server.startsWith("http:") && cluster["insecure-skip-tls-verify"] !== true) {
    throw new ObservationFailed("the kubeconfig's server has no TLS, and insecure-skip-tls-verify isn't set");
  }
  const plugin = user.exec ? "exec" : user["auth-provider"] ? "auth-provider" : undefined;
  if (plugin !== undefined) {
    const way = "use a token, a tokenFile or a client certificate";
    throw new ObservationFailed(`the kubeconfig's user has ${plugin}, and no program is run to look: ${way}`);
  }
  const files = [file];
  const include = async (path: string | undefined, what: string) => {
    if (path === undefined) return undefined;
    const included = resolve(folder, path);
    files.push(included);
    return readText(included, what);
  };
  const authority = await include(cluster["certificate-authority"], "the kubeconfig's certificate-authority");
  const certificate = await include(user["client-certificate"], "the kubeconfig's client-certificate");
  const key = await include(user["client-key"], "the kubeconfig's client-key");
  const token = await include(user.tokenFile, "the kubeconfig's tokenFile");

  return {
    cluster: {
      name: context.cluster,
      server: cluster.server.replace(/\/$/, ""),
      skipTLSVerify: cluster["insecure-skip-tls-verify"] ?? false,
      ...given("caData", cluster["certificate-authority-data"] ?? base64(authority)),
      ...given("tlsServerName", cluster["tls-server-name"]),
      ...given("proxyUrl", cluster["proxy-url"]),
    },
    user: {
      name: context.user,
      ...given("token", user.token ?? token?.trim()),
      ...given("certData", user["client-certificate-data"] ?? base64(certificate)),
      ...given("keyData", user["client-key-data"] ?? base64(key)),
      ...given("username", user.username),
      ...given("password", user.password),
      ...given("impersonateUser", user.as),
    },
    files,
  };
}

function yamlIn(content: string): unknown {
  try {
    return parse(content, { logLevel: "error" });
  } catch {
    throw new ObservationFailed("the kubeconfig is no YAML");
  }
}

async function readText(file: string, what: string): Promise<string> {
  return readFile(file, "utf8").catch((error: unknown) => {
    const code = typeof error === "object" && error !== null && "code" in error ? String(error.code) : "unknown";
    throw new ObservationFailed(`${what} can't be read (${code})`);
  });
}

function named<Entry extends { name: string }>(entries: readonly Entry[], name: string, what: string): Entry {
  const entry = entries.find((each) => each.name === name);
  if (!entry) throw new ObservationFailed(`the kubeconfig doesn't hold ${what}`);
  return entry;
}

function base64(content: string | undefined): string | undefined {
  return content === undefined ? undefined : Buffer.from(content).toString("base64");
}

/** For a type that tells an unset property from one that is undefined. */
function given<Key extends string>(key: Key, value: string | undefined): { [Given in Key]?: string } {
  const property: { [Given in Key]?: string } = {};
  if (value !== undefined) property[key] = value;
  return property;
}
