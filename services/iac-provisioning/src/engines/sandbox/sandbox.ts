import type { NetworkEntry } from "./sandbox-network.ts";
import { limitCommand, type ResourceLimits } from "./sandbox-limits.ts";
import type { EngineUser } from "./sandbox-user.ts";

/** How this process confines the engines that it starts. */
export interface Sandbox {
  /** Absent where there is no `prlimit`. */
  readonly limits?: ResourceLimits;
  /** Absent: engines run as the service does. */
  readonly user?: EngineUser;
  /** Directories in the form of PATH, in which the tools that cut off the network are looked for. */
  readonly searchPath: string;
}

/** A sandbox as one command has it. */
export interface CommandSandbox extends Sandbox {
  /** Present: the command runs in a network of its own. */
  readonly network?: NetworkEntry;
}

/** What is started, and as whom. */
export interface ConfinedCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly uid?: number;
  readonly gid?: number;
}

/**
 * A command as it is started in its sandbox. Whatever stands in front of the binary replaces itself by what follows it,
 * so the process that is started is the engine's own: one pid, one exit code, and signals reach the engine.
 */
export function confine(binary: string, args: readonly string[], sandbox?: CommandSandbox): ConfinedCommand {
  const { limits, user, network } = sandbox ?? {};
  const line = [...(limits ? limitCommand(limits) : []), binary];
  // Only the service's own user may enter the network, so it is the tool that enters which changes the user.
  if (network) return started([...network.command(user), ...line, ...args]);
  return { ...started([...line, ...args]), ...user };
}

function started([file = "", ...args]: readonly string[]): ConfinedCommand {
  return { file, args };
}
