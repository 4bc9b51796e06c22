import { z } from "zod";
import { sha256 } from "../../json/canonical-json.ts";
import { EngineStopped } from "../engine-stopped.ts";
import type { ApplyJob, EngineVersion } from "../engine.ts";

const artifact = z.object({
  planDigest: z.string(),
  engine: z.object({ product: z.string(), version: z.string() }),
  state: z.object({ lineage: z.string(), serial: z.int() }),
  /** What a refresh-only plan records, for the CLI says nothing of it when it does. */
  refreshes: z.array(z.object({ address: z.string(), action: z.enum(["update", "forget"]) })),
  /** The CLI's plan file, base64. */
  plan: z.string(),
  /** Whether a work directory must be prepared before the plan can be applied in it. */
  needsInit: z.boolean(),
  /** Which providers, exactly, the plan was made with. */
  lockFile: z.string().optional(),
});

/** All that another process needs to apply a plan. Secret: a plan file holds every value in clear. */
export type TerraformArtifact = z.infer<typeof artifact>;

export function packArtifact(content: TerraformArtifact): Uint8Array {
  return Buffer.from(JSON.stringify(content));
}

/** Throws EngineStopped when it is not the plan that was approved, or was made by another engine. */
export function unpackArtifact(job: ApplyJob, engine: EngineVersion): TerraformArtifact {
  const content = parse(job.artifact);
  if (content.planDigest !== job.planDigest) {
    throw stale(`the stored plan is ${content.planDigest}, not the approved ${job.planDigest}`);
  }
  if (content.engine.product !== engine.product || content.engine.version !== engine.version) {
    throw stale(
      `planned by ${content.engine.product} ${content.engine.version}, but ${engine.product} ${engine.version} would apply`,
    );
  }
  return content;
}

/** What a plan digest takes in for the artifact: the plan file itself. */
export function artifactDigest(planFile: Uint8Array): string {
  return sha256(planFile);
}

function parse(bytes: Uint8Array): TerraformArtifact {
  try {
    return artifact.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
  } catch {
    throw stale("the stored plan is not one of this engine");
  }
}

function stale(reason: string): EngineStopped {
  return new EngineStopped({ code: "STALE_PLAN", message: `stale plan: ${reason}` });
}
