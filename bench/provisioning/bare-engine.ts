import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { findTerraform } from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-binary";
import { directoryOf } from "./bench-programs.ts";

/** The CLI by itself, as a script of somebody without us would run it, in directories of its own. */
export interface BareEngine {
  /** For example `terraform 1.11.4`. */
  readonly label: string;
  readonly binary: string;
  open(job: BareJob): Promise<BareWorkspace>;
}

export interface BareJob {
  readonly programVersion: string;
  readonly parameters: Readonly<Record<string, string | number>>;
  /** The http state backend to use; the state lies beside the program when absent. */
  readonly state?: { readonly address: string; readonly username: string; readonly password: string };
}

export interface BareWorkspace {
  /** Where the local backend keeps the state. */
  readonly stateFile: string;
  /** Runs one verb, and answers how many milliseconds it took. Rejects unless it ends well. */
  run(verb: Verb): Promise<number>;
  close(): Promise<void>;
}

export type Verb = keyof typeof VERBS;

/** The flags that the service gives too, as far as they say what is done. */
const VERBS = {
  init: ["init", "-input=false", "-no-color"],
  plan: ["plan", "-input=false", "-json", "-out=plan.tfplan"],
  show: ["show", "-json", "-no-color", "plan.tfplan"],
  apply: ["apply", "-input=false", "-json", "plan.tfplan"],
} as const;
const BACKEND = { terraform: { backend: { http: {} } } };

/** Throws EngineUnavailable where there is none. */
export async function openBareEngine(folder: string, programs: string): Promise<BareEngine> {
  const { PATH: searchPath = "", IAC_ENGINE_BIN: named } = process.env;
  const { path: binary, version } = await findTerraform({ searchPath, ...(named && { binary: named }) });
  const root = path.join(folder, "bare");
  await mkdir(root);
  return {
    label: `${version.product} ${version.version}`,
    binary,
    async open({ programVersion, parameters, state }) {
      const directory = await mkdtemp(path.join(root, "run-"));
      await cp(directoryOf(programs, programVersion), directory, { recursive: true });
      await writeFile(path.join(directory, "bench.auto.tfvars.json"), JSON.stringify(parameters));
      if (state) await writeFile(path.join(directory, "backend_override.tf.json"), JSON.stringify(BACKEND));
      return {
        stateFile: path.join(directory, "terraform.tfstate"),
        run: (verb) => timed(binary, VERBS[verb], directory, environment(directory, state)),
        close: () => rm(directory, { recursive: true, force: true }),
      };
    },
  };
}

async function timed(
  binary: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<number> {
  const started = performance.now();
  const child = spawn(binary, args, { cwd, env, stdio: ["ignore", "ignore", "inherit"] });
  await once(child, "exit");
  const { exitCode, signalCode } = child;
  if (exitCode !== 0) throw new Error(`${args.join(" ")} ended with ${String(exitCode ?? signalCode)}`);
  return performance.now() - started;
}

function environment(home: string, state: BareJob["state"]): Record<string, string> {
  return {
    PATH: "/usr/local/bin:/usr/bin:/bin",
    HOME: home,
    TMPDIR: home,
    TF_IN_AUTOMATION: "1",
    CHECKPOINT_DISABLE: "1",
    ...(state && {
      TF_HTTP_ADDRESS: state.address,
      TF_HTTP_LOCK_ADDRESS: state.address,
      TF_HTTP_UNLOCK_ADDRESS: state.address,
      TF_HTTP_USERNAME: state.username,
      TF_HTTP_PASSWORD: state.password,
    }),
  };
}
