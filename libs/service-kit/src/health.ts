import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import {
  Health as HealthService,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "@runtime-cloud/contracts/grpc/health/v1/health_pb";
import { type Clock, systemClock } from "./clock.ts";

/** Resolves when what it looks at can be used. */
export type Probe = () => Promise<void>;

export interface Health {
  /** grpc.health.v1, for every service by name and for the whole server by the empty name. */
  routes(router: ConnectRouter): void;
  /** Asks the probes, at most once a second. `failing` names those that refused. */
  readiness(): Promise<{ ready: boolean; failing: string[] }>;
  /** NOT_SERVING from now on, whatever the probes say. */
  drain(): void;
}

export interface HealthOptions {
  /** Full names of the proto services. */
  services: readonly string[];
  /** By name, for example `database`. */
  probes?: Readonly<Record<string, Probe>>;
  clock?: Clock;
}

/** How long an answer of the probes is good. Watchers look that often. */
const FRESH_MS = 1_000;
const PROBE_TIMEOUT_MS = 2_000;

export function createHealth({ services, probes = {}, clock = systemClock }: HealthOptions): Health {
  const known = new Set(["", HealthService.typeName, ...services]);
  const drained = new AbortController();
  let last: { at: number; failing: Promise<string[]> } | undefined;

  const readiness = async () => {
    const now = clock.now().getTime();
    if (!last || now - last.at >= FRESH_MS) last = { at: now, failing: failingProbes(probes) };
    const failing = drained.signal.aborted ? ["draining"] : await last.failing;
    return { ready: failing.length === 0 && !drained.signal.aborted, failing };
  };
  const status = async () => ((await readiness()).ready ? ServingStatus.SERVING : ServingStatus.NOT_SERVING);

  return {
    readiness,
    drain: () => drained.abort(),
    routes(router) {
      router.service(HealthService, {
        async check({ service }) {
          if (!known.has(service)) throw new ConnectError(`no service "${service}" here`, Code.NotFound);
          return { status: await status() };
        },
        async *watch({ service }, { signal }) {
          let sent: ServingStatus | undefined;
          for (;;) {
            const now = known.has(service) ? await status() : ServingStatus.SERVICE_UNKNOWN;
            if (now !== sent) yield { status: (sent = now) };
            if (signal.aborted) throw signal.reason;
            await change([signal, drained.signal]);
          }
        },
      });
    },
  };
}

async function failingProbes(probes: Readonly<Record<string, Probe>>): Promise<string[]> {
  const answers = await Promise.all(
    Object.entries(probes).map(async ([name, probe]) => ({ name, ok: await passes(probe) })),
  );
  return answers.filter(({ ok }) => !ok).map(({ name }) => name);
}

function passes(probe: Probe): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), PROBE_TIMEOUT_MS);
    probe()
      .then(() => resolve(true))
      .catch(() => resolve(false))
      .finally(() => clearTimeout(timer));
  });
}

/** Resolves when one of the signals is aborted, or when the probes' answer is old. */
function change(signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, FRESH_MS);
    for (const signal of signals) signal.addEventListener("abort", wake, { once: true });
  });
}
