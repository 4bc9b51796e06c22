import { mkdir, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { foreignFileProblem } from "../../programs/foreign-files.ts";
import { InvalidProgram } from "../../programs/program.ts";
import { programDigest, readProgramFiles, writeProgramFiles, type ProgramFile } from "../../programs/program-files.ts";
import { hasCode } from "../../system-error.ts";
import { EngineStopped } from "../engine-stopped.ts";
import type { EngineJob } from "../engine.ts";
import { workVariable } from "../sandbox/guardian.ts";
import { removeWorkspace } from "../sandbox/left-workspaces.ts";
import { workDirectoryFull } from "../sandbox/sandbox-failure.ts";
import type { EngineUser } from "../sandbox/sandbox-user.ts";
import { killStrays, runningProcesses } from "../sandbox/stray-processes.ts";
import { makeWorkspace, programDirectoryOf } from "../sandbox/workspace-directory.ts";
import { readWorkspaceFile } from "../sandbox/workspace-file.ts";
import { closeToOthers, handOver } from "../sandbox/workspace-owner.ts";

/** The CLI reads every file of this form as parameters, in the order of their names. */
export const PARAMETERS_FILE = "runtime-cloud.auto.tfvars.json";
/** Puts whatever backend the program names aside. Address and credential come by the environment, never by a file. */
const BACKEND_FILE = "backend_override.tf.json";
const BACKEND_OVERRIDE = { terraform: { backend: { http: {} } } };
export const LOCK_FILE = ".terraform.lock.hcl";
/** Where the CLI puts what it installs, and its list of modules, which names the program's own as well. */
const INSTALLATIONS = ".terraform";
const LOCAL_MODULES = "modules.json";
const BACKEND_RECORD = "terraform.tfstate";

/** A private directory for the command lines of one job. */
export interface TerraformWorkspace {
  /** Where the program's copy lies and the CLI runs. */
  readonly directory: string;
  /** The CLI's HOME, and its place for temporary files. */
  readonly home: string;
  readonly planFile: string;
  /** Names this workspace's work among all of this process. */
  readonly work: string;
  /** Whether the program, or the plan, says exactly which providers it wants. */
  readonly hasLockFile: boolean;
  /** Puts the plan that is to be applied where the CLI finds it. Throws EngineStopped where there is no space for it. */
  writePlan(plan: Uint8Array): Promise<void>;
  /** The plan that the CLI made. Throws EngineStopped when there is none, or something else in its place. */
  readPlan(): Promise<Buffer>;
  /** Which providers the CLI chose; undefined where it wrote no such file. */
  readLockFile(): Promise<string | undefined>;
  /** Whether the CLI had to bring anything here, providers or modules, beside what the program holds. */
  hasInstalled(): Promise<boolean>;
  /** Whether the CLI finds it prepared. */
  readonly isPrepared: boolean;
  /** The backend's record, when it is all that the CLI left where it installs; else undefined. */
  readPreparation(): Promise<string | undefined>;
  /** Ends whatever still runs there, and removes it. */
  close(): Promise<void>;
}

/** What lies beside the program from the start. */
export interface Belongings {
  /** The provider lock of the plan that is to be applied. */
  readonly lockFile?: string | undefined;
  /** What `readPreparation` gave for the same program. */
  readonly preparation?: string | undefined;
}

/**
 * Copies the program, checked against its digest, and writes its parameters beside it; then all of it is `user`'s.
 * Throws InvalidProgram, and EngineStopped where there is no space.
 */
export async function openWorkspace(
  job: EngineJob,
  { lockFile, preparation }: Belongings,
  user?: EngineUser,
): Promise<TerraformWorkspace> {
  return sayingWhenFull(job.workRoot, async () => {
    const before = await runningProcesses();
    const root = await makeWorkspace(job.workRoot, job.state.username);
    const work = path.basename(root);
    const close = async () => {
      await killStrays({ environment: workVariable(work), directory: root, except: before });
      await removeWorkspace(root);
    };
    try {
      const files = await readProgramFiles(job.program.directory);
      refuseForeign(files, job);
      const directory = programDirectoryOf(root);
      const home = path.join(root, "home");
      const planDirectory = path.join(root, "plan");
      const planFile = path.join(planDirectory, "plan.tfplan");
      const installations = path.join(directory, INSTALLATIONS);
      for (const made of [directory, home, planDirectory]) await mkdir(made, { mode: 0o700 });
      await writeProgramFiles(files, directory);
      await writePrivately(path.join(directory, PARAMETERS_FILE), JSON.stringify(job.parameters));
      await writePrivately(path.join(directory, BACKEND_FILE), JSON.stringify(BACKEND_OVERRIDE));
      if (lockFile !== undefined) await writePrivately(path.join(directory, LOCK_FILE), lockFile);
      if (preparation !== undefined) {
        await mkdir(installations, { mode: 0o700 });
        await writePrivately(path.join(installations, BACKEND_RECORD), preparation);
      }
      if (user) {
        for (const made of [directory, home, planDirectory]) await handOver(made, user);
        await closeToOthers(root, user);
      }
      return {
        directory,
        home,
        planFile,
        work,
        isPrepared: preparation !== undefined,
        hasLockFile: lockFile !== undefined || files.some((file) => file.path === LOCK_FILE),
        writePlan: (plan) =>
          sayingWhenFull(job.workRoot, async () => {
            await writePrivately(planFile, plan);
            if (user) await handOver(planFile, user);
          }),
        readPlan: () => readPlanFile(planFile),
        readLockFile: async () => (await readWorkspaceFile(path.join(directory, LOCK_FILE)))?.toString("utf8"),
        hasInstalled: () => hasInstalled(installations),
        readPreparation: async () => {
          const left = await entriesOf(installations);
          if (left.some((name) => name !== BACKEND_RECORD)) return undefined;
          return (await readWorkspaceFile(path.join(installations, BACKEND_RECORD)))?.toString("utf8");
        },
        close,
      };
    } catch (error) {
      await close();
      throw error;
    }
  });
}

function refuseForeign(files: readonly ProgramFile[], { program }: EngineJob): void {
  if (programDigest(files) !== program.digest) {
    throw new InvalidProgram(`program ${program.programVersion}: its content is not that of digest ${program.digest}`);
  }
  const foreign = foreignFileProblem(files);
  if (foreign !== undefined) throw new InvalidProgram(foreign, program.programVersion);
}

async function hasInstalled(directory: string): Promise<boolean> {
  const found = await Promise.all(["providers", "modules"].map((kind) => entriesOf(path.join(directory, kind))));
  return found.flat().some((name) => name !== LOCAL_MODULES);
}

async function entriesOf(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

async function readPlanFile(file: string): Promise<Buffer> {
  const plan = await readWorkspaceFile(file);
  if (!plan) throw new EngineStopped({ code: "ENGINE_ERROR", message: "the engine made no plan file" });
  return plan;
}

/** Of a root service, whatever it writes is root's until it is handed over: so there is nothing to follow or to race. */
function writePrivately(file: string, content: string | Uint8Array): Promise<void> {
  return writeFile(file, content, { mode: 0o600 });
}

async function sayingWhenFull<T>(workRoot: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (hasCode(error, "ENOSPC", "EDQUOT")) throw new EngineStopped(workDirectoryFull(workRoot));
    throw error;
  }
}
