import { DASHBOARD_PATH, dashboard } from "@runtime-cloud/eventing/queues/dashboard";
import { isFree } from "@runtime-cloud/local-servers/ports";
import { startAdmin } from "@runtime-cloud/service-kit/admin";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { ConfigError, readConfig } from "@runtime-cloud/service-kit/config";
import { createHealth } from "@runtime-cloud/service-kit/health";
import { type Running, runUntilSignal } from "@runtime-cloud/service-kit/lifecycle";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import { createMetrics } from "@runtime-cloud/service-kit/metrics";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import { port } from "@runtime-cloud/service-kit/settings";
import { z } from "zod";
import { type Host, startHost } from "./host.ts";
import { beginLocalRun, type LocalRun } from "./local-run.ts";
import { FREE_SUBSCRIBER, localVariables } from "./local-settings.ts";
import { playStory } from "./story/story.ts";
import { setStage, type Stage } from "./story/stage.ts";

const PROVISIONING_PORT = 7101;
const hostSettings = z.object({ ADMIN_PORT: port("the port of the dashboard over all queues").default(7100) });

const logLevel = process.env.LOG_LEVEL ?? "warn";
const loggerOf = (service: string) => createLogger({ service, level: logLevel, pretty: true });
const print = (line: string) => process.stdout.write(`${line}\n`);

await runUntilSignal("runtime-cloud-host", start, loggerOf("runtime-cloud-host"));

/** Resolves when the services are up; the story goes on meanwhile, and a stop ends it. */
async function start(): Promise<Running> {
  print("Runtime Cloud: three services in one process");
  const { ADMIN_PORT } = readConfig(hostSettings, process.env);
  await refuseSecondHost(ADMIN_PORT);
  const local = await beginLocalRun((line) => print(`  ${line}`));
  const { infrastructure, programs, folders } = local;
  const host = await startHost(
    (service) =>
      localVariables(service, {
        infrastructure,
        folders,
        env: process.env,
        queuePrefix: "{runtime-cloud-local}",
        baselineProgram: programs.baseline,
        provisioningPort: PROVISIONING_PORT,
        logLevel,
      }),
    loggerOf,
  ).catch(async (error: unknown) => {
    await infrastructure.stop();
    throw error;
  });
  const admin = await openAdmin(host, ADMIN_PORT);
  print("  services: up");
  const stopping = new AbortController();
  void tell(host, local, admin.url, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      print("\nStopping.");
      await admin.close();
      await host.stop();
      await infrastructure.stop();
    },
  };
}

async function refuseSecondHost(adminPort: number): Promise<void> {
  if (adminPort === 0 || (await isFree(adminPort))) return;
  throw new ConfigError([
    `ADMIN_PORT=${adminPort} is taken on 127.0.0.1: Runtime Cloud may be running here already; stop that, or set another`,
  ]);
}

/** Bull Board over the queues of all three. */
async function openAdmin({ services, backend }: Host, adminPort: number) {
  const admin = await startAdmin({
    host: "127.0.0.1",
    port: adminPort,
    health: createHealth({ services: [], clock: systemClock }),
    metrics: createMetrics({ service: "runtime-cloud-host" }),
    logger: loggerOf("runtime-cloud-host"),
  });
  admin.mount(
    DASHBOARD_PATH,
    dashboard(
      backend,
      Object.values(services).flatMap(({ queues }) => queues),
    ),
  );
  return admin;
}

async function tell(host: Host, local: LocalRun, adminUrl: string, stopping: AbortSignal): Promise<void> {
  const { services, backend } = host;
  const { infrastructure, issuer, programs, folders } = local;
  const urls = {
    "iac-provisioning": services["iac-provisioning"].url,
    "execution-capacity": services["execution-capacity"].url,
    "runtime-environment": services["runtime-environment"].url,
  };
  const { databaseUrls } = infrastructure;
  const { targetsDir } = folders;
  const stage = await setStage({ urls, databaseUrls, backend, issuer, targetsDir, programs, print });
  try {
    await playStory(stage);
    await showAddresses(host, local, stage, adminUrl);
  } catch (error) {
    if (stopping.aborted) return;
    print(`\nThe story failed: ${error instanceof Error ? error.message : String(error)}`);
    print("The services stay up until Ctrl-C.");
  } finally {
    await stage.close();
  }
}

async function showAddresses(
  { services, backend }: Host,
  { issuer, infrastructure }: LocalRun,
  { tenantId }: Stage,
  adminUrl: string,
): Promise<void> {
  const token = await issuer.issue({ subject: "local-operator", tenant: tenantId, scopes: allScopes });
  print("\nReady. It stays up until Ctrl-C.\n");
  for (const [service, { url, adminUrl: own }] of Object.entries(services)) {
    print(`  ${service.padEnd(20)} ${url}   health and metrics ${own}/healthz /readyz /metrics`);
  }
  print(`  ${"dashboard".padEnd(20)} ${adminUrl}${DASHBOARD_PATH}`);
  print(`\n  A token for the story's tenant, ${tenantId}, good for 12 hours (authorization: Bearer …):\n  ${token}`);
  print(`\n  ${consumerLine(infrastructure.queues, backend.prefix)}`);
}

/** How a consumer outside, such as `examples/consumer`, gets at the events. */
function consumerLine(queues: Record<string, string>, prefix: string): string {
  // A server that the environment names may have a password that is no business of this terminal.
  const addresses = Object.entries(queues).map(([name, url]) => `${name}=${process.env[name] ? `$${name}` : url}`);
  return `Events, as examples/consumer reads them:\n  SUBSCRIBER=${FREE_SUBSCRIBER} ${addresses.join(" ")} QUEUE_PREFIX='${prefix}'`;
}
