import { DASHBOARD_PATH, dashboard } from "@runtime-cloud/eventing/dashboard";
import { startAdmin } from "@runtime-cloud/service-kit/admin";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { createHealth } from "@runtime-cloud/service-kit/health";
import { type Running, runUntilSignal } from "@runtime-cloud/service-kit/lifecycle";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import { createMetrics } from "@runtime-cloud/service-kit/metrics";
import { allScopes } from "@runtime-cloud/service-kit/scopes";
import { type Host, startHost } from "./host.ts";
import { beginLocalRun, type LocalRun, targetsDir } from "./local-run.ts";
import { localVariables } from "./local-settings.ts";
import { playStory } from "./story/story.ts";
import { setStage } from "./story/stage.ts";

const ADMIN_PORT = 7100;
const PROVISIONING_PORT = 7101;

const logLevel = process.env.LOG_LEVEL ?? "warn";
const loggerOf = (service: string) => createLogger({ service, level: logLevel, pretty: true });
const print = (line: string) => process.stdout.write(`${line}\n`);

await runUntilSignal("runtime-cloud-host", start, loggerOf("runtime-cloud-host"));

async function start(): Promise<Running> {
  print("Runtime Cloud: three services in one process");
  const local = await beginLocalRun((line) => print(`  ${line}`));
  const { infrastructure, programs } = local;
  const host = await startHost(
    (service) =>
      localVariables(service, {
        infrastructure,
        env: process.env,
        queuePrefix: "{runtime-cloud-local}",
        baselineProgram: programs.baseline,
        provisioningPort: PROVISIONING_PORT,
        logLevel,
      }),
    loggerOf,
  );
  const admin = await openAdmin(host);
  await tell(host, local);
  await showAddresses(host, local, admin.url);
  return {
    async stop() {
      await admin.close();
      await host.stop();
      await infrastructure.stop();
    },
  };
}

/** Bull Board over the queues of all three. */
async function openAdmin({ services, backend }: Host) {
  const admin = await startAdmin({
    host: "127.0.0.1",
    port: Number(process.env.ADMIN_PORT ?? ADMIN_PORT),
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

async function tell({ services, backend }: Host, { infrastructure, issuer, programs }: LocalRun): Promise<void> {
  const urls = {
    "iac-provisioning": services["iac-provisioning"].url,
    "execution-capacity": services["execution-capacity"].url,
    "runtime-environment": services["runtime-environment"].url,
  };
  const { databaseUrls } = infrastructure;
  const stage = await setStage({ urls, databaseUrls, backend, issuer, targetsDir, programs, print });
  try {
    await playStory(stage);
  } finally {
    await stage.close();
  }
}

async function showAddresses({ services }: Host, { issuer }: LocalRun, adminUrl: string): Promise<void> {
  const token = await issuer.issue({ subject: "local-operator", tenant: "local", scopes: allScopes });
  print("\nReady. It stays up until Ctrl-C.\n");
  for (const [service, { url, adminUrl: own }] of Object.entries(services)) {
    print(`  ${service.padEnd(20)} ${url}   health and metrics ${own}/healthz /readyz /metrics`);
  }
  print(`  ${"dashboard".padEnd(20)} ${adminUrl}${DASHBOARD_PATH}`);
  print(`\n  A token for tenant "local", good for 12 hours (authorization: Bearer …):\n  ${token}`);
}
