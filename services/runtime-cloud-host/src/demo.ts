import { openBackend } from "@runtime-cloud/eventing/queues/open-backend";
import { serviceNames } from "@runtime-cloud/migrations/services";
import { readConfig } from "@runtime-cloud/service-kit/config";
import { createLogger } from "@runtime-cloud/service-kit/logger";
import { sharedSettings } from "@runtime-cloud/service-kit/settings";
import { parseArgs } from "node:util";
import { deployment } from "./deployment.ts";
import { type LocalRun, beginScratchRun } from "./local-run.ts";
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
  const local = await beginScratchRun((line) => print(`  ${line}`));
  const running: Stoppable[] = [local.infrastructure];
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

async function play({ infrastructure, programs, issuer, folders }: LocalRun, running: Stoppable[]): Promise<void> {
  const services = await deployment({
    infrastructure,
    folders,
    env: process.env,
    queuePrefix: `{runtime-cloud-demo-${process.pid}}`,
    baselineProgram: programs.baseline,
    logLevel,
  });
  running.push(services);
  // All at once: they start in any order.
  await Promise.all(serviceNames.map((service) => services.start(service)));

  const backend = await openBackend(readConfig(sharedSettings, services.variables("iac-provisioning")), logger);
  running.push({ stop: () => backend.close() });
  const { urls } = services;
  const { databaseUrls } = infrastructure;
  const { targetsDir } = folders;
  const stage = await setStage({ urls, databaseUrls, backend, issuer, targetsDir, programs, print });
  running.push({ stop: () => stage.close() });
  await playStory(stage);
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

type Stoppable = { stop(): Promise<void> };
