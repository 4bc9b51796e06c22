import { realpath } from "node:fs/promises";
import path from "node:path";
import type { Sandbox } from "./engines/sandbox/sandbox.ts";
import { resourceLimits } from "./engines/sandbox/sandbox-limits.ts";
import { chooseEngineUser, type EngineUserChoice } from "./engines/sandbox/sandbox-user.ts";
import { locateTerraform, type TerraformLookup } from "./engines/terraform/terraform-binary.ts";
import type { Settings } from "./settings.ts";

/** How this process confines engines, and what it can't do of what it should, each a sentence for the log. */
export interface OpenedSandbox {
  sandbox: Sandbox;
  warnings: string[];
}

/** Settles what this machine gives of the confinement that the settings ask for. */
export async function openSandbox(settings: Settings): Promise<OpenedSandbox> {
  const { PATH: searchPath, ENGINE_CPU_SECONDS, ENGINE_MEMORY_MB, ENGINE_FILE_MB, ENGINE_MAX_PROCESSES } = settings;
  const { user, warning } = await engineUser(settings);
  const asked = {
    cpuSeconds: ENGINE_CPU_SECONDS,
    memoryMb: ENGINE_MEMORY_MB,
    fileMb: ENGINE_FILE_MB,
    maxProcesses: ENGINE_MAX_PROCESSES,
  };
  const limits = await resourceLimits(asked, { searchPath, ownUser: user !== undefined });
  return {
    sandbox: { searchPath, ...(limits && { limits }), ...(user && { user }) },
    warnings: [...(warning === undefined ? [] : [warning]), ...(limits ? [] : [NO_LIMITS])],
  };
}

/** Who engines run as. Throws EngineUserRefused. */
export async function engineUser(settings: Settings): Promise<EngineUserChoice> {
  // WORK_DIR itself is the service's to open, and a binary that isn't there is somebody else's complaint.
  const ways = [path.dirname(path.resolve(settings.WORK_DIR))];
  const binary = await locateTerraform(terraformLookup(settings)).then(
    (located) => realpath(located),
    () => undefined,
  );
  return chooseEngineUser(settings.ENGINE_UID, binary === undefined ? ways : [...ways, binary]);
}

/** Where the settings have the OpenTofu or Terraform binary looked for. */
export function terraformLookup({ PATH, IAC_ENGINE_BIN }: Settings): TerraformLookup {
  return { searchPath: PATH, ...(IAC_ENGINE_BIN !== undefined && { binary: IAC_ENGINE_BIN }) };
}

const NO_LIMITS =
  "engines run without limits of processor time, memory, file size and processes: install prlimit (util-linux)";
