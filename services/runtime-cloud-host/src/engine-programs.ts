import { findTerraform } from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-binary";
import { EngineUnavailable } from "@runtime-cloud/iac-provisioning/engines/engine-unavailable";

/** Programs that the engine at hand can run, and what that engine is. */
export interface EnginePrograms {
  baseline: string;
  broken: string;
  /** For people, for example `terraform 1.11.4`. */
  engine: string;
}

/** Terraform's or OpenTofu's programs where one of them is; else those of the manifests engine, said in a line. */
export async function enginePrograms(env: NodeJS.ProcessEnv, log: (line: string) => void): Promise<EnginePrograms> {
  try {
    const { IAC_ENGINE_BIN: binary, PATH: searchPath = "" } = env;
    const { version } = await findTerraform({ searchPath, ...(binary && { binary }) });
    const engine = `${version.product} ${version.version}`;
    log(`IaC engine: ${engine}, and manifests`);
    return { baseline: "environment-baseline@1.0.0", broken: "broken-service@1.0.0", engine };
  } catch (error) {
    if (!(error instanceof EngineUnavailable)) throw error;
    log(`IaC engine: manifests only, since ${error.message}`);
    return {
      baseline: "environment-baseline-manifests@1.0.0",
      broken: "broken-service-manifests@1.0.0",
      engine: "manifests",
    };
  }
}
