import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { freePort } from "@runtime-cloud/local-servers/ports";
import { until } from "@runtime-cloud/local-servers/until";
import { serviceProgram } from "@runtime-cloud/runtime-cloud-host/service-program";

/** IaCProvisioningService in a process of its own, which a test may end as it likes. It ends with the test's process. */
export interface ProvisioningProcess {
  pid: number;
  /** `host:port` of its API. */
  address: string;
  adminUrl: string;
  /** All that it has written to its two streams. */
  said(): string;
  /** The most memory that it ever held, in bytes. */
  peakMemory(): number;
  /** Resolves with its exit code once it is gone; null when a signal ended it. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const READY_WITHIN_MS = 60_000;
const KIBIBYTE = 1024;

/** Starts one with exactly these variables beside PATH and its ports, and resolves when it is ready. */
export async function startProvisioningProcess(variables: Record<string, string>): Promise<ProvisioningProcess> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, serviceProgram("iac-provisioning"), {
    cwd: ROOT,
    env: { PATH: process.env["PATH"], ...variables, PORT: String(port), ADMIN_PORT: String(adminPort) },
    // The channel carries nothing: it closes when either side is gone.
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    detached: true,
  });
  const { pid } = child;
  if (pid === undefined) throw new Error("the service's process didn't start");
  const written: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => void written.push(text));
  }
  const ended = once(child, "close");
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  const said = () => written.join("");

  await until("the service to be ready", READY_WITHIN_MS, async () => {
    if (child.exitCode !== null) throw new Error(`the service ended at its start and says:\n${said()}`);
    return (await answers(`${adminUrl}/readyz`)) || undefined;
  });
  return {
    pid,
    address: `127.0.0.1:${port}`,
    adminUrl,
    said,
    peakMemory: () => peakMemoryOf(pid),
    async end(signal) {
      child.kill(signal);
      await ended;
      return child.exitCode;
    },
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

function peakMemoryOf(pid: number): number {
  const [, kibibytes = "0"] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kibibytes) * KIBIBYTE;
}
