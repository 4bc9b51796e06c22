import type { ProgramFile } from "./program-files.ts";

/** Files that would win over the parameters and the backend which a run brings along. */
const OVERRIDES = [/(?:^|_)override\.(?:tf|tofu)(?:\.json)?$/, /\.auto\.tfvars(?:\.json)?$/];
/** What the CLI leaves behind in a directory that someone ran it in; it would be taken for the run's own. */
const LEFTOVERS = /^(?:\.terraform\/|terraform\.tfstate|\.terraformrc$|terraform\.rc$)/;

/** Names the first file that no program may hold; undefined when there is none. */
export function foreignFileProblem(files: readonly ProgramFile[]): string | undefined {
  const foreign = files.find(({ path }) => LEFTOVERS.test(path) || isOverride(path));
  if (!foreign) return undefined;
  return `${foreign.path}: override, auto.tfvars, state and CLI configuration files are not allowed in a program`;
}

function isOverride(path: string): boolean {
  return !path.includes("/") && OVERRIDES.some((pattern) => pattern.test(path));
}
