import { z } from "zod";
import { parsedJsonObject } from "../../json/parsed-json.ts";
import { EngineStopped } from "../engine-stopped.ts";
import type { ApplyJob, EngineVersion } from "../engine.ts";

const artifact = z.object({
  planDigest: z.string(),
  engine: z.object({ product: z.string(), version: z.string() }),
  state: z.object({ lineage: z.string(), serial: z.int() }),
  steps: z.array(
    z.object({
      address: z.string(),
      action: z.enum(["no-op", "create", "read", "update", "delete", "forget"]),
      /** The file's text when the plan was made; null when there was none. */
      expected: z.string().nullable(),
      /** The file's text afterwards; null when there is none. */
      text: z.string().nullable(),
      /** Whether the file stays as it is and only the record changes. */
      recordOnly: z.boolean(),
    }),
  ),
  outputs: parsedJsonObject,
  secrets: z.array(z.string()),
});

/** All that another process needs to apply a plan. Secret: the files may hold sensitive parameters. */
export type ManifestArtifact = z.infer<typeof artifact>;
export type ManifestStep = ManifestArtifact["steps"][number];

export function packManifests(content: ManifestArtifact): Uint8Array {
  return Buffer.from(JSON.stringify(content));
}

/** Throws EngineStopped when it is not the plan that was approved, or was made by another engine. */
export function unpackManifests(job: ApplyJob, engine: EngineVersion): ManifestArtifact {
  const content = parse(job.artifact);
  if (content.planDigest !== job.planDigest) {
    throw stalePlan(`the stored plan is ${content.planDigest}, not the approved ${job.planDigest}`);
  }
  if (content.engine.version !== engine.version) {
    throw stalePlan(`planned by version ${content.engine.version} of the engine, but ${engine.version} would apply`);
  }
  return content;
}

export function stalePlan(reason: string): EngineStopped {
  return new EngineStopped({ code: "STALE_PLAN", message: `stale plan: ${reason}` });
}

function parse(bytes: Uint8Array): ManifestArtifact {
  try {
    return artifact.parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
  } catch {
    throw stalePlan("the stored plan is not one of this engine");
  }
}
