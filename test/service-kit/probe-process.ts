import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { join } from "node:path";
import { z } from "zod";
import { fromSetUp } from "../_support/environment.ts";

export interface ProbeProcess {
  url: string;
  token: string;
  /** Sends the signals and waits for the exit code; null when a signal ended the process. */
  stop(...signals: NodeJS.Signals[]): Promise<number | null>;
  /** Standard error, complete once the process ended. */
  log: Promise<string>;
}

/** For tests that start processes, on a busy machine. */
export const PROCESS_TIMEOUT_MS = 60_000;

function spawnProbe(env: Record<string, string>) {
  const child = spawn(process.execPath, [join(fromSetUp("SERVICE_BUNDLES"), "probe.mjs")], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return { child, log: text(child.stderr), exit: exitCode(child) };
}

function exitCode(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once("exit", (code) => resolve(code)));
}

/** Starts probe-main.ts and waits until it serves. */
export async function startProbeProcess(env: Record<string, string> = { STOP_MS: "0" }): Promise<ProbeProcess> {
  const { child, log, exit } = spawnProbe(env);
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([once(lines, "line"), exit.then(async () => Promise.reject(new Error(await log)))]);
  const { url, token } = z.object({ url: z.string(), token: z.string() }).parse(JSON.parse(String(first[0])));
  return {
    url,
    token,
    log,
    async stop(...signals) {
      for (const signal of signals) child.kill(signal);
      return exit;
    },
  };
}

/** Runs probe-main.ts to its end. */
export async function runProbeProcess(env: Record<string, string>): Promise<{ code: number | null; log: string }> {
  const { log, exit } = spawnProbe(env);
  return { code: await exit, log: await log };
}
