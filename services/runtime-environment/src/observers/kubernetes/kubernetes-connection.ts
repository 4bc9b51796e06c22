import type { Agent, IncomingMessage } from "node:http";
import type * as kubernetesClient from "@kubernetes/client-node";
import type { AppsV1Api, CoreV1Api, KubeConfig, RequestContext } from "@kubernetes/client-node";
import { openGet, textOf } from "./kubernetes-get.ts";

/** The official client. It takes seconds and 70 MB to load: a service that observes no cluster never does. */
export type KubernetesClient = typeof kubernetesClient;

/** One cluster under one credential. */
export interface KubernetesConnection {
  apps(signal: AbortSignal): AppsV1Api;
  core(signal: AbortSignal): CoreV1Api;
  /** The response's head, whatever its status; for answers that stream. */
  open(path: string, query: Record<string, string>, signal: AbortSignal): Promise<IncomingMessage>;
}

/** The kubeconfig's current context must name a cluster. */
export function kubernetesConnection(client: KubernetesClient, config: KubeConfig): KubernetesConnection {
  const server = config.getCurrentCluster()?.server ?? "";
  const credential = onOneAgent(config);

  const configuration = (signal: AbortSignal) =>
    client.createConfiguration({
      baseServer: new client.ServerConfiguration(server, {}),
      authMethods: { default: credential },
      httpApi: client.wrapHttpLibrary({
        async send(request) {
          const response = await openGet(request.getUrl(), parts(request, signal));
          const body = await textOf(response);
          const headers = { "content-type": response.headers["content-type"] ?? "" };
          const read = { text: async () => body, binary: async () => Buffer.from(body) };
          return new client.ResponseContext(response.statusCode ?? 0, headers, read);
        },
      }),
    });

  return {
    apps: (signal) => new client.AppsV1Api(configuration(signal)),
    core: (signal) => new client.CoreV1Api(configuration(signal)),
    async open(path, query, signal) {
      const request = new client.RequestContext(`${server}${path}`, client.HttpMethod.GET);
      for (const [name, value] of Object.entries(query)) request.setQueryParam(name, value);
      await credential.applySecurityAuthentication(request);
      return openGet(request.getUrl(), parts(request, signal));
    },
  };
}

/** One agent for all requests resumes TLS sessions; the client makes a new one for each. */
function onOneAgent(config: KubeConfig) {
  let agent: Agent | undefined;
  return {
    getName: () => config.getName(),
    async applySecurityAuthentication(request: RequestContext) {
      await config.applySecurityAuthentication(request);
      agent ??= request.getAgent();
      if (agent) request.setAgent(agent);
    },
  };
}

function parts(request: RequestContext, signal: AbortSignal) {
  return { agent: request.getAgent(), headers: request.getHeaders(), signal };
}
