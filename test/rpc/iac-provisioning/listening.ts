import { createClient } from "@connectrpc/connect";
import { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import { routes } from "@runtime-cloud/iac-provisioning/routes";
import { createGrpcJsTransport } from "@runtime-cloud/service-kit/grpc-transport";
import { standardInterceptors } from "@runtime-cloud/service-kit/interceptors";
import { createLocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import { serve } from "@runtime-cloud/service-kit/serve";
import type { IacService, ProvisioningClient } from "../../_support/iac-provisioning.ts";
import { startTcpProxy } from "../../_support/tcp-proxy.ts";

/** A client over a connection of its own. */
export interface Connected {
  client: ProvisioningClient;
  /** Cuts the connection, for good. */
  cut(): Promise<void>;
}

export interface Listening {
  connect(tenantId: string): Promise<Connected>;
  close(): Promise<void>;
}

/** The service behind a port, called by gRPC. */
export async function listening(service: IacService): Promise<Listening> {
  const logger = silentLogger();
  const issuer = await createLocalIssuer();
  const server = await serve({
    host: "127.0.0.1",
    port: 0,
    services: [IaCProvisioningService.typeName],
    routes: routes(service.context),
    interceptors: standardInterceptors({ logger, verifier: issuer.verifier }),
    logger,
    graceMs: 2_000,
  });
  const cuts: (() => Promise<void>)[] = [];
  return {
    async connect(tenantId) {
      const token = await issuer.issue({ subject: "alice", tenant: tenantId, scopes: allScopes });
      const proxy = await startTcpProxy(server.port);
      const address = new URL(proxy.through(server.url)).host;
      const transport = createGrpcJsTransport({ address, token: () => token });
      let cutting: Promise<void> | undefined;
      const cut = () => (cutting ??= proxy.close().finally(() => transport.close()));
      cuts.push(cut);
      return { client: createClient(IaCProvisioningService, transport), cut };
    },
    async close() {
      await Promise.all(cuts.map((cut) => cut()));
      await server.drain();
    },
  };
}

/** Reads a stream message by message. */
export function reading<Message>(stream: AsyncIterable<Message>) {
  const messages = stream[Symbol.asyncIterator]();
  const next = async () => {
    const step = await messages.next();
    return step.done ? undefined : step.value;
  };
  return {
    /** The next message, or undefined at the stream's end. */
    next,
    /** The first message that is meant; fails at the stream's end. */
    async find(what: string, isMeant: (message: Message) => boolean): Promise<Message> {
      for (let message = await next(); message !== undefined; message = await next()) {
        if (isMeant(message)) return message;
      }
      throw new Error(`the stream ended without ${what}`);
    },
    /** Everything up to the stream's end. */
    async rest(): Promise<Message[]> {
      const rest: Message[] = [];
      for (let message = await next(); message !== undefined; message = await next()) rest.push(message);
      return rest;
    },
  };
}
