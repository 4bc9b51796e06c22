import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { freePort } from "@runtime-cloud/local-servers/ports";
import { startSupervised, type SupervisedProcess } from "@runtime-cloud/local-servers/supervised-process";
import { until } from "@runtime-cloud/local-servers/until";
import { z } from "zod";
import { findEtcd } from "./etcd-binary.ts";

/** One member, with etcd's defaults: it flushes what it acknowledges. */
export interface EtcdServer {
  /** `http://127.0.0.1:<port>`, as a client's `hosts`. */
  readonly url: string;
  readonly version: string;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 20_000;
const STOP_GRACE_MS = 5_000;
const healthSchema = z.object({ health: z.literal("true") });
const versionSchema = z.object({ etcdserver: z.string() });

/** A private etcd whose data end with it. Undefined where it can't be had; `log` is told why. */
export async function openEtcd(log: (line: string) => void): Promise<EtcdServer | undefined> {
  try {
    return await startEtcd(await findEtcd());
  } catch (error) {
    log(`etcd is left out: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

async function startEtcd(command: string): Promise<EtcdServer> {
  const scratch = await mkdtemp(join(tmpdir(), "runtime-cloud-etcd-"));
  const [url, peerUrl] = [`http://127.0.0.1:${await freePort()}`, `http://127.0.0.1:${await freePort()}`];
  const logFile = join(scratch, "etcd.log");
  const server = await startSupervised({
    command,
    args: etcdArguments(join(scratch, "data"), url, peerUrl),
    logFile,
    stopSignal: "SIGTERM",
    killSignal: "SIGKILL",
    graceMs: STOP_GRACE_MS,
    scratch,
  });
  try {
    return { url, version: await versionOnceHealthy(server, url, logFile), stop: () => server.stop() };
  } catch (error) {
    await server.stop();
    await rm(scratch, { recursive: true, force: true });
    throw error;
  }
}

function etcdArguments(dataDir: string, url: string, peerUrl: string): string[] {
  const values = {
    name: "bench",
    "data-dir": dataDir,
    "listen-client-urls": url,
    "advertise-client-urls": url,
    "listen-peer-urls": peerUrl,
    "initial-advertise-peer-urls": peerUrl,
    "initial-cluster": `bench=${peerUrl}`,
    logger: "zap",
    "log-level": "warn",
  };
  return Object.entries(values).map(([name, value]) => `--${name}=${value}`);
}

async function versionOnceHealthy(server: SupervisedProcess, url: string, logFile: string): Promise<string> {
  await until("etcd to be healthy", START_TIMEOUT_MS, async () => {
    if (server.hasEnded()) throw new Error(`etcd ended at its start and says:\n${await readFile(logFile, "utf8")}`);
    return healthSchema.safeParse(await answerOf(`${url}/health`)).success || undefined;
  });
  return versionSchema.parse(await answerOf(`${url}/version`)).etcdserver;
}

/** Undefined while nobody answers. */
async function answerOf(url: string): Promise<unknown> {
  try {
    const response = await fetch(url);
    return await response.json();
  } catch {
    return undefined;
  }
}
