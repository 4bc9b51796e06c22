import type { EngineEvent } from "../engine-event.ts";
import type { EngineJob } from "../engine.ts";
import type { CommandSandbox, Sandbox } from "../sandbox/sandbox.ts";
import { closedNetwork, type ClosedNetwork } from "../sandbox/sandbox-network.ts";
import { scrubber, type Scrubber } from "../redaction/scrub.ts";
import type { StateDocument } from "../state-client.ts";
import type { TerraformBinary } from "./terraform-binary.ts";
import type { Preparations } from "./terraform-preparation.ts";
import { stateOutputs } from "./terraform-state.ts";
import { openWorkspace, type TerraformWorkspace } from "./terraform-workspace.ts";
import { scalarTexts } from "../../json/canonical-json.ts";

/** What a deployment settles for every job. */
export interface TerraformInstallation {
  readonly binary: TerraformBinary;
  /** Variables that reach the CLI and its providers, such as TF_CLI_CONFIG_FILE or a cloud's credentials. */
  readonly extraEnvironment: Readonly<Record<string, string>>;
  readonly sandbox: Sandbox;
  readonly preparations: Preparations;
}

/** One job's CLI: where it runs, what state it starts from, and what must not be said. */
export interface TerraformSession<Job extends EngineJob = EngineJob> extends TerraformInstallation {
  readonly job: Job;
  readonly state: StateDocument;
  readonly workspace: TerraformWorkspace;
  readonly sandbox: CommandSandbox;
  readonly scrub: Scrubber;
}

/**
 * Opens a session, plays a verb in it, and removes its work directory whatever happens. Throws EngineStopped when the
 * program is to run without a network and this installation can't do that.
 */
export async function* inSession<Job extends EngineJob, Outcome>(
  installation: TerraformInstallation,
  job: Job,
  state: StateDocument,
  lockFile: string | undefined,
  verb: (session: TerraformSession<Job>) => AsyncGenerator<EngineEvent, Outcome>,
): AsyncGenerator<EngineEvent, Outcome> {
  const network = await networkFor(installation, job);
  try {
    const sandbox = { ...installation.sandbox, ...(network && { network }) };
    const preparation = installation.preparations.of(job.program.digest, state);
    const workspace = await openWorkspace(job, { lockFile, preparation }, sandbox.user);
    try {
      return yield* verb({ ...installation, job, state, workspace, sandbox, scrub: sessionScrubber(job, state) });
    } finally {
      await workspace.close();
    }
  } finally {
    network?.close();
  }
}

async function networkFor({ sandbox }: TerraformInstallation, job: EngineJob): Promise<ClosedNetwork | undefined> {
  return job.program.network === "none" ? closedNetwork(job.state.address, sandbox.searchPath) : undefined;
}

/** Hides what the job was told, its credential, what its state holds as sensitive, and what else is known by now. */
export function sessionScrubber(job: EngineJob, state: StateDocument, more: readonly string[] = []): Scrubber {
  const recorded = scalarTexts(stateOutputs(state).sensitiveOutputs);
  return scrubber([...job.secrets, job.state.password, ...recorded, ...more]);
}
