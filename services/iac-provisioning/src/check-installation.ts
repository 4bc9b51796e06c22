import { constants } from "node:fs";
import { access, chmod, mkdir, stat } from "node:fs/promises";
import path from "node:path";
import { ConfigError, describeSettings } from "@runtime-cloud/service-kit/config";
import { EngineUnavailable } from "./engines/engine-unavailable.ts";
import { EngineUserRefused } from "./engines/sandbox/sandbox-user.ts";
import { locateTerraform } from "./engines/terraform/terraform-binary.ts";
import { engineUser, terraformLookup } from "./open-sandbox.ts";
import { InvalidProgram } from "./programs/program.ts";
import { listPrograms, loadProgram } from "./programs/program-directory.ts";
import { messageOf } from "./system-error.ts";
import { settings as declared, type Settings } from "./settings.ts";

/** How many programs a message names. */
const MAX_NAMED = 10;

/**
 * Holds the settings against this machine: makes the directories to write to, and looks at whatever else they name.
 * Without any OpenTofu or Terraform the service starts all the same; one that is asked for by name must be there.
 *
 * @throws ConfigError with every problem at once
 */
export async function checkInstallation(settings: Settings): Promise<void> {
  const problems = await Promise.all(checks.map((check) => problemsOf(check, settings)));
  if (problems.flat().length > 0) throw new ConfigError(problems.flat());
}

const checks: readonly Check[] = [
  { variable: "PROGRAMS_DIR", whatIsWrong: ({ PROGRAMS_DIR }) => unreadable(PROGRAMS_DIR) },
  { variable: "TARGETS_DIR", whatIsWrong: ({ TARGETS_DIR }) => unwritable(TARGETS_DIR, 0o700) },
  { variable: "WORK_DIR", whatIsWrong: unwritableWork },
  { variable: "IAC_ENGINE_BIN", whatIsWrong: noEngine },
  { variable: "ENGINE_UID", whatIsWrong: noUser },
  { variable: "BASELINE_PROGRAM", whatIsWrong: noBaseline },
];

async function problemsOf({ variable, whatIsWrong }: Check, settings: Settings): Promise<string[]> {
  const wrong = await whatIsWrong(settings);
  if (wrong === undefined) return [];
  const wanted = describeSettings(declared).find((setting) => setting.variable === variable)?.description ?? "";
  return [`${variable}="${settings[variable]}" ${wrong}; it wants: ${wanted}`];
}

async function unreadable(directory: string): Promise<string | undefined> {
  try {
    if (!(await stat(directory)).isDirectory()) return "is not a directory";
    await access(directory, constants.R_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `is not a directory that can be read (${messageOf(error)})`;
  }
}

/** The engines' user passes through, and sees none of what lies there but its own. */
async function unwritableWork(settings: Settings): Promise<string | undefined> {
  const { WORK_DIR } = settings;
  const lowered = await engineUser(settings).then(
    ({ user }) => user !== undefined,
    () => false,
  );
  const problem = await unwritable(WORK_DIR, lowered ? 0o711 : 0o700);
  if (problem === undefined && lowered) await chmod(WORK_DIR, (await stat(WORK_DIR)).mode | 0o001);
  return problem;
}

async function noUser(settings: Settings): Promise<string | undefined> {
  try {
    await engineUser(settings);
    return undefined;
  } catch (error) {
    if (error instanceof EngineUserRefused) return error.message;
    throw error;
  }
}

async function unwritable(directory: string, mode?: number): Promise<string | undefined> {
  try {
    await mkdir(directory, { recursive: true, ...(mode !== undefined && { mode }) });
    await access(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `is not a directory that can be made and written (${messageOf(error)})`;
  }
}

async function noEngine(settings: Settings): Promise<string | undefined> {
  const { IAC_ENGINE_BIN } = settings;
  if (IAC_ENGINE_BIN === undefined) return undefined;
  try {
    await locateTerraform(terraformLookup(settings));
    return undefined;
  } catch (error) {
    if (!(error instanceof EngineUnavailable)) throw error;
    return IAC_ENGINE_BIN.includes(path.sep) ? "is not an executable file" : "is not an executable file on the PATH";
  }
}

async function noBaseline({ PROGRAMS_DIR, BASELINE_PROGRAM }: Settings): Promise<string | undefined> {
  // Said of PROGRAMS_DIR already.
  if (await unreadable(PROGRAMS_DIR)) return undefined;
  try {
    if (await loadProgram(PROGRAMS_DIR, BASELINE_PROGRAM)) return undefined;
    const there = await listPrograms(PROGRAMS_DIR);
    const named = [...there.slice(0, MAX_NAMED), ...(there.length > MAX_NAMED ? ["…"] : [])].join(", ");
    return `is not in PROGRAMS_DIR ${PROGRAMS_DIR}, which holds ${named || "no program"}`;
  } catch (error) {
    if (error instanceof InvalidProgram) return `can't be used: ${error.message}`;
    return `can't be read in PROGRAMS_DIR ${PROGRAMS_DIR} (${messageOf(error)})`;
  }
}

interface Check {
  variable: "PROGRAMS_DIR" | "TARGETS_DIR" | "WORK_DIR" | "IAC_ENGINE_BIN" | "ENGINE_UID" | "BASELINE_PROGRAM";
  whatIsWrong(settings: Settings): Promise<string | undefined>;
}
