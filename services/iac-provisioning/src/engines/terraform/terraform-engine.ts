import type { Engine, EngineJob } from "../engine.ts";
import { applyFailed, refuse } from "../engine-result.ts";
import { failureFor } from "../engine-stopped.ts";
import { readState } from "../state-client.ts";
import { adoptTerraform } from "./terraform-adopting.ts";
import { applyTerraform, refuseStale } from "./terraform-applying.ts";
import { unpackArtifact } from "./terraform-artifact.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { findTerraform, type TerraformBinary, type TerraformLookup } from "./terraform-binary.ts";
import { observeTerraform } from "./terraform-observing.ts";
import { planTerraform } from "./terraform-planning.ts";
import { rememberedPreparations } from "./terraform-preparation.ts";
import { inSession, type TerraformInstallation } from "./terraform-session.ts";

export interface TerraformSettings extends TerraformLookup {
  readonly extraEnvironment: TerraformInstallation["extraEnvironment"];
  /** Values of the extra environment that no event or outcome may show. */
  readonly environmentSecrets?: readonly string[];
  /** Absent: no limits, and the service's own user. */
  readonly sandbox?: Sandbox;
}

/** The OpenTofu or Terraform CLI as an Engine; its state is at the service's own http backend. */
export function terraformEngine(settings: TerraformSettings): Engine {
  const find = rememberSuccess(() => findTerraform(settings));
  const preparations = rememberedPreparations();
  const install = async (): Promise<TerraformInstallation> => ({
    binary: await find(),
    extraEnvironment: settings.extraEnvironment,
    sandbox: settings.sandbox ?? { searchPath: settings.searchPath },
    preparations,
  });
  const discreet = <Job extends EngineJob>(job: Job): Job => ({
    ...job,
    secrets: [...job.secrets, ...(settings.environmentSecrets ?? [])],
  });
  return {
    name: "terraform",
    version: async () => (await find()).version,

    async *plan(job) {
      try {
        return yield* inSession(await install(), discreet(job), await readState(job.state), undefined, planTerraform);
      } catch (error) {
        return refuse(failureFor(error));
      }
    },

    async *apply(job) {
      try {
        const installation = await install();
        const artifact = unpackArtifact(job, installation.binary.version);
        const state = await readState(job.state);
        refuseStale(artifact, state);
        return yield* inSession(installation, discreet(job), state, artifact.lockFile, (session) =>
          applyTerraform(session, artifact),
        );
      } catch (error) {
        return applyFailed("failed", failureFor(error));
      }
    },

    async *drift(job) {
      try {
        return yield* inSession(
          await install(),
          discreet(job),
          await readState(job.state),
          undefined,
          observeTerraform,
        );
      } catch (error) {
        return refuse(failureFor(error));
      }
    },

    async adopt(job, values) {
      try {
        return await adoptTerraform(await install(), discreet(job), values);
      } catch (error) {
        return refuse(failureFor(error));
      }
    },
  };
}

/** The binary is looked for again only while it was not found. */
function rememberSuccess(find: () => Promise<TerraformBinary>): () => Promise<TerraformBinary> {
  let found: Promise<TerraformBinary> | undefined;
  return () => {
    found ??= find().catch((error: unknown) => {
      found = undefined;
      throw error;
    });
    return found;
  };
}
