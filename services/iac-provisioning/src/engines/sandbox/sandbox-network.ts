import { type ChildProcess, spawn } from "node:child_process";
import { connect, Server, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { messageOf } from "../../system-error.ts";
import { EngineStopped } from "../engine-stopped.ts";
import { guard } from "./guardian.ts";
import { findTool } from "./sandbox-tools.ts";
import type { EngineUser } from "./sandbox-user.ts";

/** Starting a small Node process on a busy machine. */
const OPENS_WITHIN_MS = 20_000;
const HOLDER = fileURLToPath(new URL("sandbox-network-holder.mjs", import.meta.url));
const MAX_COMPLAINT_LENGTH = 300;

/** How a command gets into a network of its own. */
export interface NetworkEntry {
  /** The words to put in front of a command line, which then runs in the network as the given user. */
  command(user: EngineUser | undefined): string[];
}

/** A network with nothing in it but one port. */
export interface ClosedNetwork extends NetworkEntry {
  close(): void;
}

/**
 * Makes a network that has no way out: a namespace with its own loopback, on which nothing answers but, at the port of
 * `address`, what answers there outside. It takes a root service, or a kernel that lets an ordinary user have namespaces.
 * Throws EngineStopped (SANDBOX_UNAVAILABLE) where there is none to be had: nothing that asked for it runs with a
 * network instead.
 */
export async function closedNetwork(address: string, searchPath: string): Promise<ClosedNetwork> {
  const [unshare, nsenter] = await Promise.all([findTool("unshare", searchPath), findTool("nsenter", searchPath)]);
  if (unshare === undefined || nsenter === undefined) throw unavailable("unshare and nsenter (util-linux) aren't here");

  const isRoot = process.getuid?.() === 0;
  const asRoot = isRoot ? [] : ["--user", "--map-root-user"];
  const { hostname, port } = new URL(address);
  const holder = spawn(
    unshare,
    [...asRoot, "--net", "--mount", "--propagation", "private", "--", process.execPath, HOLDER, hostname, port],
    {
      cwd: "/",
      detached: true,
      env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    },
  );
  if (holder.pid !== undefined) holder.once("exit", guard(holder.pid));
  try {
    const gate = await gateOf(holder);
    const ends = new Set<Socket>();
    gate.on("connection", (inside: Socket) => join(inside, connect(Number(port), hostname), ends));
    return {
      command: (user) => enter(nsenter, holder.pid ?? 0, isRoot, user),
      close() {
        gate.close();
        for (const end of ends) end.destroy();
        holder.kill("SIGKILL");
      },
    };
  } catch (error) {
    holder.kill("SIGKILL");
    throw unavailable(messageOf(error));
  }
}

function enter(nsenter: string, holder: number, isRoot: boolean, user: EngineUser | undefined): string[] {
  const into = [nsenter, "--target", String(holder), "--net"];
  if (!isRoot) return [...into, "--user", "--preserve-credentials", "--"];
  return [...into, ...(user ? ["--setgid", String(user.gid), "--setuid", String(user.uid)] : []), "--"];
}

/** The port inside, as the holder opened it: a socket stays in the network that it was made in, wherever it is used. */
async function gateOf(holder: ChildProcess): Promise<Server> {
  let complaint = "";
  holder.stderr?.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(0, MAX_COMPLAINT_LENGTH);
  });
  const timer = setTimeout(() => holder.kill("SIGKILL"), OPENS_WITHIN_MS);
  try {
    return await new Promise<Server>((resolve, reject) => {
      holder.once("message", (_message, gate) => {
        if (gate instanceof Server) resolve(gate);
        else reject(new Error("its port didn't open"));
      });
      holder.once("error", reject);
      holder.once("close", () => reject(new Error(complaint.trim() || "its holder ended without a word")));
    });
  } finally {
    clearTimeout(timer);
  }
}

/** Carries bytes both ways, until either end is done. */
function join(inside: Socket, outside: Socket, ends: Set<Socket>): void {
  for (const [end, other] of [
    [inside, outside],
    [outside, inside],
  ] as const) {
    ends.add(end);
    end.pipe(other);
    end.on("error", () => other.destroy());
    end.once("close", () => {
      ends.delete(end);
      other.destroy();
    });
  }
}

function unavailable(reason: string): EngineStopped {
  const message =
    `this installation can't cut off the network, as the program's \`network: none\` wants: ${reason}; run the service ` +
    "as root on Linux with util-linux, or on a kernel that allows user namespaces, or drop that line from the program";
  return new EngineStopped({ code: "SANDBOX_UNAVAILABLE", message });
}
