import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { until } from "@runtime-cloud/local-servers/until";
import type { ServiceName } from "@runtime-cloud/migrations/services";
import { serviceProgram } from "./service-program.ts";

/** A service in a process of its own. It ends with this process, even when this process is killed. */
export interface ServiceProcess {
  /** Undefined when it could not be started. */
  pid: number | undefined;
  /** Resolves when its `/readyz` says so; rejects when it ends before. */
  ready(): Promise<void>;
  stop(): Promise<void>;
  /** As a crash would: nothing is said or written any more. */
  kill(): Promise<void>;
}

const root = fileURLToPath(new URL("../../..", import.meta.url));
const READY_WITHIN_MS = 60_000;

/** Starts a service's main with exactly these variables beside the PATH. */
export function startServiceProcess(
  service: ServiceName,
  env: NodeJS.ProcessEnv & { ADMIN_PORT: string },
): ServiceProcess {
  const child = spawn(process.execPath, serviceProgram(service), {
    cwd: root,
    env: { PATH: process.env.PATH, ...env },
    // A group of its own, so that Ctrl-C reaches it only through `stop`; and a channel that carries nothing: it closes
    // when either side is gone.
    detached: true,
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await ended;
  };
  return {
    pid: child.pid,
    async ready() {
      await until(`${service} to be ready`, READY_WITHIN_MS, async () => {
        if (child.exitCode !== null) throw new Error(`${service} ended at its start with exit code ${child.exitCode}`);
        return (await isReady(env.ADMIN_PORT)) || undefined;
      });
    },
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
  };
}

async function isReady(adminPort: string): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).ok;
  } catch {
    return false;
  }
}
