import { ConnectError, type Interceptor, type ServiceImpl } from "@connectrpc/connect";
import { createLocalIssuer, type LocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import type { Health } from "@runtime-cloud/service-kit/health";
import { standardInterceptors } from "@runtime-cloud/service-kit/interceptors";
import { createLogger, type Logger } from "@runtime-cloud/service-kit/logger";
import { principalOf } from "@runtime-cloud/service-kit/principal";
import { serve, type Server } from "@runtime-cloud/service-kit/serve";
import type { ServerTls } from "@runtime-cloud/service-kit/tls";
import { z } from "zod";
import { ProbeService } from "./probe_pb.ts";

/** A real server of the probe service on a free port, its issuer, and what it logged. */
export interface Probe {
  server: Server;
  issuer: LocalIssuer;
  /** A token of tenant `acme` that may do everything. */
  token: string;
  log: LogLine[];
}

export type LogLine = z.output<typeof lineSchema>;

const lineSchema = z.looseObject({ level: z.string(), msg: z.string().optional() });

export interface ProbeOptions {
  handlers?: Partial<ServiceImpl<typeof ProbeService>>;
  graceMs?: number;
  health?: Health;
  /** Outermost, around the standard ones. */
  interceptors?: Interceptor[];
  tls?: ServerTls;
  /** Without it a free one. */
  port?: number;
}

export const probeScopes = ["probe:ask", "probe:watch"];

export async function startProbe(options: ProbeOptions = {}): Promise<Probe> {
  const { handlers = {}, graceMs = 5_000, health, interceptors = [], tls, port = 0 } = options;
  const issuer = await createLocalIssuer();
  const log: LogLine[] = [];
  const logger = recordingLogger(log);
  const server = await serve({
    host: "127.0.0.1",
    port,
    routes: (router) => void router.service(ProbeService, { ...wellBehaved, ...handlers }),
    interceptors: [...interceptors, ...standardInterceptors({ logger, verifier: issuer.verifier })],
    services: [ProbeService.typeName],
    logger,
    graceMs,
    ...(health && { health }),
    ...(tls && { tls }),
  });
  const token = await issuer.issue({ subject: "alice", tenant: "acme", scopes: probeScopes });
  return { server, issuer, token, log };
}

export function recordingLogger(log: LogLine[]): Logger {
  return createLogger({
    service: "probe",
    level: "debug",
    destination: {
      write(line) {
        log.push(lineSchema.parse(JSON.parse(line)));
      },
    },
  });
}

/** Awaits a refusal and returns it; fails when the call succeeds. */
export async function refusalOf(call: Promise<unknown>): Promise<ConnectError> {
  const outcome = await call.then(
    () => undefined,
    (error: unknown) => ConnectError.from(error),
  );
  if (!outcome) throw new Error("the call was expected to be refused");
  return outcome;
}

export async function collect<T>(messages: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const message of messages) all.push(message);
  return all;
}

const wellBehaved: ServiceImpl<typeof ProbeService> = {
  ask({ question }, context) {
    const { subject, tenantId } = principalOf(context);
    return {
      answer: question.length > 100 ? `${question.length} characters` : `you asked ${question}`,
      subject,
      tenantId,
    };
  },
  async *watch({ messages }) {
    for (let number = 1; number <= messages; number += 1) yield { number };
  },
  async collect(requests) {
    const words = await collect(requests);
    return { sentence: words.map(({ word }) => word).join(" ") };
  },
  async *chat(requests) {
    for await (const { word } of requests) yield { word: word.toUpperCase() };
  },
  forgotten: () => ({}),
};
