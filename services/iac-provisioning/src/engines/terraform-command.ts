import type { Diagnostic, EngineEvent } from "./engine-event.ts";
import { EngineStopped, stopIfAsked } from "./engine-stopped.ts";
import { safeText } from "./plain-text.ts";
import { run, type Command, type Exit } from "./subprocess.ts";
import { terraformEnvironment } from "./terraform-environment.ts";
import { terraformFailure, textDiagnostics } from "./terraform-failure.ts";
import { terraformMessageReader } from "./terraform-messages.ts";
import { parseTerraformPlan, type TerraformPlan } from "./terraform-plan-json.ts";
import type { TerraformSession } from "./terraform-session.ts";

/** `show -json` prints one line; 15,000 resources are about 11 MB. */
const MAX_PLAN_JSON_LENGTH = 256 * 1024 * 1024;

export interface CommandEnd {
  readonly exit: Exit;
  readonly diagnostics: readonly Diagnostic[];
  /** Steps of resources that were done. */
  readonly stepsDone: number;
}

/** Prepares the work directory: backend and providers. Throws EngineStopped. */
export async function* init(session: TerraformSession): AsyncGenerator<EngineEvent, void> {
  stopIfAsked(session.job.signals);
  const readonly = session.workspace.hasLockFile ? ["-lockfile=readonly"] : [];
  const lines: string[] = [];
  const exit = yield* run(
    command(session, ["init", "-input=false", "-no-color", ...readonly]),
    (output): EngineEvent[] => {
      const line = safeText(output.line.trimEnd(), session.scrub);
      lines.push(line);
      return line === "" ? [] : [{ type: "log", level: output.stream === "stderr" ? "warn" : "info", line }];
    },
  );
  succeed(session, exit, textDiagnostics(lines));
}

/** Runs one verb with `-json` and tells what it says as events. Its success is the caller's to judge. */
export async function* speak(
  session: TerraformSession,
  args: readonly string[],
): AsyncGenerator<EngineEvent, CommandEnd> {
  stopIfAsked(session.job.signals);
  const readLine = terraformMessageReader(session.scrub);
  const diagnostics: Diagnostic[] = [];
  let stepsDone = 0;
  const exit = yield* run(command(session, args), (output) => {
    const events = readLine(output);
    for (const event of events) {
      if (event.type === "diagnostic") diagnostics.push(event.diagnostic);
      if (event.type === "resource-applied") stepsDone += 1;
    }
    return events;
  });
  return { exit, diagnostics, stepsDone };
}

/** The plan file's content, in memory only. Throws EngineStopped. */
export async function showPlan(session: TerraformSession): Promise<TerraformPlan> {
  const show = command(session, ["show", "-json", "-no-color", session.workspace.planFile]);
  const complaints: string[] = [];
  let json = "";
  const running = run({ ...show, maxLineLength: MAX_PLAN_JSON_LENGTH }, ({ stream, line }): never[] => {
    if (stream === "stdout" && line.startsWith("{")) json = line;
    else complaints.push(safeText(line, session.scrub));
    return [];
  });
  const { value: exit } = await running.next();
  succeed(session, exit, textDiagnostics(complaints));
  return parseTerraformPlan(json);
}

/** Throws EngineStopped unless the command ended well. */
export function succeed({ job }: TerraformSession, exit: Exit, diagnostics: readonly Diagnostic[]): void {
  if (exit.code !== 0) throw new EngineStopped(terraformFailure(exit, diagnostics, job.signals));
}

function command({ binary, workspace, job, extraEnvironment }: TerraformSession, args: readonly string[]): Command {
  return {
    binary: binary.path,
    args,
    directory: workspace.directory,
    environment: terraformEnvironment(workspace.home, job.state, extraEnvironment),
    signals: job.signals,
  };
}
