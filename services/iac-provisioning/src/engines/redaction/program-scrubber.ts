import path from "node:path";
import type { Scrubber } from "./scrub.ts";
import type { TerraformSession } from "../terraform/terraform-session.ts";

/**
 * The session's scrubber for what the CLI says: it also makes the paths of the program's copy relative to the program,
 * for the work directory is nobody's business and gone when somebody reads of it.
 */
export function programScrubber({ scrub, workspace }: Pick<TerraformSession, "scrub" | "workspace">): Scrubber {
  const { directory, home, planFile } = workspace;
  const root = path.dirname(planFile);
  return {
    ...scrub,
    text: (text) =>
      scrub
        .text(text)
        .replaceAll(`${directory}/`, "")
        .replaceAll(directory, ".")
        .replaceAll(home, "~")
        .replaceAll(root, ".."),
  };
}
