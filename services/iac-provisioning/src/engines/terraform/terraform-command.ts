import type { Diagnostic, EngineEvent } from "../engine-event.ts";
import { EngineStopped, stopIfAsked } from "../engine-stopped.ts";
import type { EngineVersion } from "../engine.ts";
import type { OutputLine } from "../sandbox/line-splitter.ts";
import { safeText } from "../redaction/plain-text.ts";
import { programScrubber } from "../redaction/program-scrubber.ts";
import { byteReader } from "../sandbox/read-output.ts";
import { run, type Command, type Exit } from "../sandbox/subprocess.ts";
import { terraformEnvironment } from "./terraform-environment.ts";
import { terraformFailure } from "./terraform-failure.ts";
import { terraformMessageReader } from "./terraform-messages.ts";
import { terraformPlanReader, type TerraformPlan } from "./terraform-plan.ts";
import { sessionScrubber, type TerraformSession } from "./terraform-session.ts";
import { textDiagnostics } from "../text-diagnostics.ts";

/** The CLI's own messages are far shorter. */
const MAX_MESSAGE_LENGTH = 1024 * 1024;
/** A state that the CLI prints is one line. */
const MAX_HEARD_LENGTH = 256 * 1024 * 1024;
/** Lines that are no messages, kept in case that they tell the only reason of a failure. */
const MAX_PLAIN_LINES = 500;

export interface CommandEnd {
  readonly exit: Exit;
  readonly diagnostics: readonly Diagnostic[];
  /** Steps of resources that were done. */
  readonly stepsDone: number;
}

export interface SpeakOptions {
  /** Is given each line as it is, however long. */
  readonly hear?: (line: OutputLine) => void;
  /** Whether it has to write its state when this process is killed: see `Command`. */
  readonly outlivesService?: boolean;
}

/** Prepares the work directory, backend and providers, unless it is prepared. Throws EngineStopped. */
export async function* init(session: TerraformSession): AsyncGenerator<EngineEvent, void> {
  const { job, binary, workspace, preparations } = session;
  if (workspace.isPrepared) return;
  yield* runInit(session);
  // Whether OpenTofu plans with what another start of it left isn't known.
  if (binary.version.product === "terraform")
    preparations.remember(job.program.digest, await workspace.readPreparation());
}

async function* runInit(session: TerraformSession): AsyncGenerator<EngineEvent, void> {
  const json = speaksWhileInit(session.binary.version) ? ["-json"] : [];
  const readonly = session.workspace.hasLockFile ? ["-lockfile=readonly"] : [];
  const { exit, diagnostics } = yield* speak(session, ["init", "-input=false", "-no-color", ...json, ...readonly]);
  succeed(session, exit, diagnostics);
}

/** Runs one verb with `-json` and tells what it says as events. Its success is the caller's to judge. */
export async function* speak(
  session: TerraformSession,
  args: readonly string[],
  { hear, outlivesService = false }: SpeakOptions = {},
): AsyncGenerator<EngineEvent, CommandEnd> {
  stopIfAsked(session.job.signals);
  const readLine = terraformMessageReader(programScrubber(session));
  const diagnostics: Diagnostic[] = [];
  const plainLines: string[] = [];
  let stepsDone = 0;
  const maxLineLength = hear ? MAX_HEARD_LENGTH : MAX_MESSAGE_LENGTH;
  const exit = yield* run({ ...command(session, args), maxLineLength, outlivesService }, (output) => {
    hear?.(output);
    const { events, isMessage } = readLine({ ...output, line: output.line.slice(0, MAX_MESSAGE_LENGTH) });
    for (const event of events) {
      if (event.type === "diagnostic") diagnostics.push(event.diagnostic);
      if (event.type === "resource-applied") stepsDone += 1;
      if (event.type === "log" && !isMessage && plainLines.length < MAX_PLAIN_LINES) plainLines.push(event.line);
    }
    return events;
  });
  const told = diagnostics.some(({ severity }) => severity === "error");
  return { exit, diagnostics: told ? diagnostics : [...diagnostics, ...textDiagnostics(plainLines)], stepsDone };
}

/** The plan file's content, read as it is printed. Throws EngineStopped. */
export async function showPlan(session: TerraformSession): Promise<TerraformPlan> {
  const { job, state } = session;
  const plan = terraformPlanReader();
  await printPlan(session, (bytes) => plan.write(bytes));
  return plan.end((secrets) => sessionScrubber(job, state, secrets));
}

/** Hands the plan file's content on as JSON while it is printed. Throws EngineStopped, and what `read` throws. */
export async function printPlan(session: TerraformSession, read: (bytes: Uint8Array) => void): Promise<void> {
  const scrub = programScrubber(session);
  const complaints: string[] = [];
  const { stdout, refusal } = byteReader(read);
  const show = command(session, ["show", "-json", "-no-color", session.workspace.planFile]);
  const running = run({ ...show, stdout }, ({ line }): never[] => {
    if (complaints.length < MAX_PLAIN_LINES) complaints.push(safeText(line, scrub));
    return [];
  });
  const { value: exit } = await running.next();
  stopIfAsked(session.job.signals);
  const diagnostics = textDiagnostics(complaints);
  // A command whose stdout was closed ends without success too, and what closed it is the reason.
  if (refusal() !== undefined && diagnostics.length === 0) throw refusal();
  succeed(session, exit, diagnostics);
}

/** Throws EngineStopped unless the command ended well. */
export function succeed({ job }: TerraformSession, exit: Exit, diagnostics: readonly Diagnostic[]): void {
  if (exit.code !== 0) throw new EngineStopped(terraformFailure(exit, diagnostics, job.signals));
}

/** `init -json` came with Terraform 1.9 and OpenTofu 1.7. */
function speaksWhileInit({ product, version }: EngineVersion): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 1 || minor >= (product === "opentofu" ? 7 : 9);
}

function command(session: TerraformSession, args: readonly string[]): Command {
  const { binary, workspace, job, extraEnvironment, sandbox } = session;
  return {
    binary: binary.path,
    args,
    directory: workspace.directory,
    environment: terraformEnvironment(workspace.home, job.state, extraEnvironment),
    signals: job.signals,
    sandbox,
    work: workspace.work,
  };
}
