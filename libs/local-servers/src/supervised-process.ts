import { spawn } from "node:child_process";
import { Socket } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const WATCHDOG = fileURLToPath(new URL("watchdog.mjs", import.meta.url));

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** Where both of its output streams are appended. */
  readonly logFile: string;
  /** What makes it end in good order, and what ends it when it hasn't after `graceMs`. */
  readonly stopSignal: NodeJS.Signals;
  readonly killSignal: NodeJS.Signals;
  readonly graceMs: number;
  /** The account it runs as; ours when absent. */
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
  /** A folder that is removed once the server was stopped, by us or because this process is gone. */
  readonly scratch?: string | undefined;
}

export interface SupervisedProcess {
  readonly pid: number;
  /** Settles when the server has ended, for whatever reason. */
  readonly ended: Promise<void>;
  hasEnded(): boolean;
  /** Ends the server in good order. */
  stop(): Promise<void>;
  /** Ends the server at once, with SIGKILL. */
  kill(): Promise<void>;
}

/**
 * Starts a server that ends with this process, even when this process is killed: a watchdog holds it, and stops it
 * when our end of their pipe closes. It doesn't keep this process alive, and Ctrl-C doesn't reach it.
 */
export async function startSupervised(server: ServerCommand): Promise<SupervisedProcess> {
  const watchdog = spawn(process.execPath, [WATCHDOG, JSON.stringify(server)], {
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
    env: { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" },
  });
  let ended = false;
  const end = new Promise<void>((resolve) => watchdog.once("exit", () => resolve())).then(() => {
    ended = true;
  });
  const pid = await startedPid(watchdog, server.command);
  watchdog.unref();
  for (const stream of watchdog.stdio) if (stream instanceof Socket) stream.unref();

  const stop = async () => {
    watchdog.ref();
    watchdog.stdin.end();
    await end;
  };
  const kill = async () => {
    watchdog.ref();
    if (!ended) process.kill(pid, "SIGKILL");
    await end;
  };
  return { pid, ended: end, hasEnded: () => ended, stop, kill };
}

async function startedPid(watchdog: ReturnType<typeof spawn>, command: string): Promise<number> {
  let complaint = "";
  watchdog.stderr?.on("data", (chunk: Buffer) => (complaint += chunk.toString()));
  return new Promise((resolve, reject) => {
    if (watchdog.stdout !== null) createInterface(watchdog.stdout).once("line", (line) => resolve(Number(line)));
    watchdog.once("error", reject);
    watchdog.once("close", () => reject(new Error(`Can't start ${command}: ${complaint.trim()}`)));
  });
}
