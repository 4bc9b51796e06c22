import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { collectDefaultMetrics, Counter, Histogram, Registry } from "prom-client";

/** One process's Prometheus metrics. */
export interface Metrics {
  /** Where a service registers its own gauges and counters. */
  registry: Registry;
  /** Counts and times every RPC by service, method and code; a stream counts when it ends. */
  interceptor: Interceptor;
}

const DURATION_BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];

/** Process, garbage collection and event loop metrics come with it. */
export function createMetrics({ service }: { service: string }): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ deployable: service });
  collectDefaultMetrics({ register: registry });
  const calls = new Counter({
    name: "rpc_server_calls_total",
    help: "RPCs that ended, by code",
    labelNames: ["service", "method", "code"],
    registers: [registry],
  });
  const duration = new Histogram({
    name: "rpc_server_duration_seconds",
    help: "Time from an RPC's first byte to its end",
    labelNames: ["service", "method"],
    buckets: DURATION_BUCKETS_SECONDS,
    registers: [registry],
  });

  const interceptor: Interceptor = (next) => async (request) => {
    const labels = { service: request.service.typeName, method: request.method.name };
    const stop = duration.startTimer(labels);
    const ended = (code: string) => {
      stop();
      calls.inc({ ...labels, code });
    };
    try {
      const response = await next(request);
      if (response.stream) return { ...response, message: counted(response.message, ended) };
      ended("ok");
      return response;
    } catch (error) {
      ended(codeOf(error));
      throw error;
    }
  };
  return { registry, interceptor };
}

async function* counted<T>(messages: AsyncIterable<T>, ended: (code: string) => void): AsyncGenerator<T> {
  let code = "canceled";
  try {
    yield* messages;
    code = "ok";
  } catch (error) {
    code = codeOf(error);
    throw error;
  } finally {
    ended(code);
  }
}

function codeOf(error: unknown): string {
  return error instanceof ConnectError ? snakeCase(Code[error.code]) : "internal";
}

function snakeCase(name: string): string {
  return name.replace(/(?<=[a-z])[A-Z]/g, (capital) => `_${capital}`).toLowerCase();
}
