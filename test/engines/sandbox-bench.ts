import { chmod, readdir } from "node:fs/promises";
import path from "node:path";
import type { ApplyOutcome, Engine, EngineJob, PlanOutcome } from "@runtime-cloud/iac-provisioning/engines/engine";
import type { Sandbox } from "@runtime-cloud/iac-provisioning/engines/sandbox/sandbox";
import {
  resourceLimits,
  type LimitSettings,
  type ResourceLimits,
} from "@runtime-cloud/iac-provisioning/engines/sandbox/sandbox-limits";
import { terraformEngine } from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-engine";
import { approved, openBench, planned, play, type EngineBench, type Played } from "./engine-bench.ts";

export const NOBODY = { uid: 65_534, gid: 65_534 };
export const SEARCH_PATH = process.env["PATH"] ?? "";
const GENEROUS: LimitSettings = { cpuSeconds: 600, memoryMb: 4_096, fileMb: 1_024, maxProcesses: 4_096 };

/** An engine bench whose work directory the engines' user gets at. */
export interface SandboxBench {
  readonly bench: EngineBench;
  readonly workRoot: string;
  plan(program: string, engine: Engine, workDirectory?: string): Promise<Played<PlanOutcome>>;
  /** Plans and applies a program in an environment of its own. */
  apply(program: string, engine: Engine): Promise<Applied>;
  /** A program whose one resource runs a shell script. */
  shellProgram(name: string, script: string, declarations?: string): Promise<string>;
  /** Fails when a work directory is left. */
  close(): Promise<void>;
}

export interface Applied {
  readonly job: EngineJob;
  readonly outcome: ApplyOutcome;
  /** What the engine's log says, line by line, without who says it. */
  readonly said: string;
  /** All events and the outcome. */
  readonly everything: string;
}

export async function openSandboxBench(): Promise<SandboxBench> {
  const bench = await openBench();
  const workRoot = path.join(bench.directory, "work");
  // As the service leaves its own: passed through, not looked into.
  for (const directory of [bench.directory, workRoot]) await chmod(directory, 0o711);
  return {
    bench,
    workRoot,

    async plan(program, engine, workDirectory = workRoot) {
      const job = { ...(await (await bench.environment()).job(program, {})), workRoot: workDirectory };
      return play(engine.plan({ ...job, mode: "APPLY" }));
    },

    async apply(program, engine) {
      const job = await (await bench.environment()).job(program, {});
      const plan = await play(engine.plan({ ...job, mode: "APPLY" }));
      const apply = await play(engine.apply({ ...job, ...approved(planned(plan.outcome)) }));
      const everything = JSON.stringify([plan.events, apply]);
      return { job, outcome: apply.outcome, said: linesOf(apply), everything };
    },

    shellProgram: (name, script, declarations = "") =>
      bench.writeProgram(name, {
        "program.yaml": `engine: terraform\ndescription: Runs a script.\n${declarations}`,
        "main.tf": `
          resource "terraform_data" "shell" {
            provisioner "local-exec" {
              interpreter = ["/bin/bash", "-c"]
              command     = <<-EOT
                ${script}
              EOT
            }
          }
        `,
      }),

    async close() {
      const left = await readdir(workRoot);
      await bench.close();
      if (left.length > 0) throw new Error(`work directories are left: ${left.join(", ")}`);
    },
  };
}

export function engineIn(sandbox: Omit<Sandbox, "searchPath">): Engine {
  return terraformEngine({
    searchPath: SEARCH_PATH,
    extraEnvironment: {},
    sandbox: { ...sandbox, searchPath: SEARCH_PATH },
  });
}

/** Generous limits, but for those given. */
export async function limited(limits: Partial<LimitSettings> = {}, ownUser = true): Promise<ResourceLimits> {
  const set = await resourceLimits({ ...GENEROUS, ...limits }, { searchPath: SEARCH_PATH, ownUser });
  if (!set) throw new Error("there is no prlimit here: install util-linux");
  return set;
}

function linesOf({ events }: Played<unknown>): string {
  const lines = events.flatMap((event) => (event.type === "log" ? [event.line] : []));
  return lines.join("\n").replace(/^.*?\(local-exec\): /gm, "");
}
