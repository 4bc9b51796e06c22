import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { InvalidProgram } from "../programs/program.ts";
import { programDigest, readProgramFiles, writeProgramFiles, type ProgramFile } from "../programs/program-files.ts";
import type { EngineJob } from "./engine.ts";

/** The CLI reads every file of this form as parameters, in the order of their names. */
const PARAMETERS_FILE = "runtime-cloud.auto.tfvars.json";
/** Puts whatever backend the program names aside. Address and credential come by the environment, never by a file. */
const BACKEND_FILE = "backend_override.tf.json";
const BACKEND_OVERRIDE = { terraform: { backend: { http: {} } } };
export const LOCK_FILE = ".terraform.lock.hcl";

/** Files that would win over the two above. */
const OVERRIDES = [/(?:^|_)override\.(?:tf|tofu)(?:\.json)?$/, /\.auto\.tfvars(?:\.json)?$/];
/** What the CLI leaves behind in a directory that someone ran it in; it would be taken for this run's own. */
const LEFTOVERS = /^(?:\.terraform\/|terraform\.tfstate|\.terraformrc$|terraform\.rc$)/;

/** A private directory for one command line of one job. */
export interface TerraformWorkspace {
  /** Where the program's copy lies and the CLI runs. */
  readonly directory: string;
  readonly home: string;
  readonly planFile: string;
  /** Whether the program, or the plan, says exactly which providers it wants. */
  readonly hasLockFile: boolean;
  close(): Promise<void>;
}

/**
 * Copies the program, checked against its digest, and writes its parameters beside it. `lockFile` is the provider lock
 * of the plan that is to be applied. Throws InvalidProgram.
 */
export async function openWorkspace(job: EngineJob, lockFile?: string): Promise<TerraformWorkspace> {
  const root = await mkdtemp(path.join(job.workRoot, "terraform-"));
  const close = () => rm(root, { recursive: true, force: true });
  try {
    const files = await readProgramFiles(job.program.directory);
    refuseForeign(files, job);
    const directory = path.join(root, "program");
    const home = path.join(root, "home");
    await mkdir(directory, { mode: 0o700 });
    await mkdir(home, { mode: 0o700 });
    await writeProgramFiles(files, directory);
    await writePrivately(directory, PARAMETERS_FILE, JSON.stringify(job.parameters));
    await writePrivately(directory, BACKEND_FILE, JSON.stringify(BACKEND_OVERRIDE));
    if (lockFile !== undefined) await writePrivately(directory, LOCK_FILE, lockFile);
    const hasLockFile = lockFile !== undefined || files.some((file) => file.path === LOCK_FILE);
    return { directory, home, planFile: path.join(root, "plan.tfplan"), hasLockFile, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function refuseForeign(files: readonly ProgramFile[], { program }: EngineJob): void {
  if (programDigest(files) !== program.digest) {
    throw new InvalidProgram(`program ${program.programVersion}: its content is not that of digest ${program.digest}`);
  }
  const foreign = files.find(
    ({ path: name }) =>
      LEFTOVERS.test(name) || (!name.includes("/") && OVERRIDES.some((pattern) => pattern.test(name))),
  );
  if (foreign) {
    throw new InvalidProgram(
      `program ${program.programVersion}: ${foreign.path}: override, auto.tfvars and state files are not allowed in a program`,
    );
  }
}

function writePrivately(directory: string, name: string, content: string): Promise<void> {
  return writeFile(path.join(directory, name), content, { mode: 0o600 });
}
