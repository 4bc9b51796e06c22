import { openBackend } from "@runtime-cloud/eventing/open-backend";
import { freePort } from "@runtime-cloud/local-servers/ports";
import { serviceNames, type ServiceName } from "@runtime-cloud/migrations/services";
import { readConfig } from "@runtime-cloud/service-kit/config";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import { sharedSettings } from "@runtime-cloud/service-kit/settings";
import { parseArgs } from "node:util";
import { type LocalRun, beginLocalRun, targetsDir } from "./local-run.ts";
import { localVariables } from "./local-settings.ts";
import { startServiceProcess } from "./service-process.ts";
import { StoryFailed } from "./story/narrator.ts";
import { setStage } from "./story/stage.ts";
import { playStory } from "./story/story.ts";

const USAGE = `Usage: npm run demo [-- --exit]

Plays the story against three service processes with real Redis, and checks each step by what the APIs, the databases
and the subscribers' inboxes say.

  --exit   end when the story does, with 0 only if every step held; otherwise stay up until Ctrl-C`;

const logLevel = process.env.LOG_LEVEL ?? "warn";
const logger = createLogger({ service: "demo", level: logLevel, pretty: true });
const print = (line: string) => process.stdout.write(`${line}\n`);

process.exitCode = await main();

async function main(): Promise<number> {
  const options = readOptions();
  if (!options) return 2;
  print("Runtime Cloud: three services, each a process with its own database");
  const local = await beginLocalRun((line) => print(`  ${line}`), { redisRequired: true });
  const running: { stop(): Promise<void> }[] = [local.infrastructure];
  try {
    await play(local, running);
    print("\nEvery step held.");
    if (!options.exit) await interrupted();
    return 0;
  } catch (error) {
    if (!(error instanceof StoryFailed)) throw error;
    print(`\nThe story failed: ${error.message}`);
    return 1;
  } finally {
    for (const each of running.reverse()) await each.stop();
  }
}

async function play(local: LocalRun, running: { stop(): Promise<void> }[]): Promise<void> {
  const ports = await freePorts();
  const variables = (service: ServiceName) => ({
    ...localVariables(service, {
      infrastructure: local.infrastructure,
      env: process.env,
      queuePrefix: `{runtime-cloud-demo-${process.pid}}`,
      baselineProgram: local.programs.baseline,
      provisioningPort: ports["iac-provisioning"].api,
      logLevel,
    }),
    PORT: String(ports[service].api),
    ADMIN_PORT: String(ports[service].admin),
  });
  // The one that the others call comes last: they start in any order.
  const starts = [...serviceNames].reverse().map((service) => startServiceProcess(service, variables(service)));
  for (const start of await Promise.allSettled(starts)) {
    if (start.status === "fulfilled") running.push(start.value);
  }
  await Promise.all(starts);

  const backend = await openBackend(readConfig(sharedSettings, variables("iac-provisioning")), logger);
  running.push({ stop: () => backend.close() });
  const stage = await setStage({
    urls: {
      "iac-provisioning": `http://127.0.0.1:${ports["iac-provisioning"].api}`,
      "execution-capacity": `http://127.0.0.1:${ports["execution-capacity"].api}`,
      "runtime-environment": `http://127.0.0.1:${ports["runtime-environment"].api}`,
    },
    databaseUrls: local.infrastructure.databaseUrls,
    backend,
    issuer: local.issuer,
    targetsDir,
    programs: local.programs,
    print,
  });
  running.push({ stop: () => stage.close() });
  await playStory(stage);
}

async function freePorts(): Promise<Record<ServiceName, { api: number; admin: number }>> {
  const pair = async () => ({ api: await freePort(), admin: await freePort() });
  return { "iac-provisioning": await pair(), "execution-capacity": await pair(), "runtime-environment": await pair() };
}

function readOptions(): { exit: boolean } | undefined {
  try {
    return parseArgs({ options: { exit: { type: "boolean", default: false } } }).values;
  } catch (error) {
    print(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return undefined;
  }
}

function interrupted(): Promise<void> {
  print("It stays up until Ctrl-C.");
  return new Promise((resolve) => process.once("SIGINT", resolve).once("SIGTERM", resolve));
}
