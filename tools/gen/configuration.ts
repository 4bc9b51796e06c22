import { executionCapacity } from "@runtime-cloud/execution-capacity/definition";
import { iacProvisioning } from "@runtime-cloud/iac-provisioning/definition";
import { runtimeEnvironment } from "@runtime-cloud/runtime-environment/definition";
import { describeSettings, type SettingDescription } from "@runtime-cloud/service-kit/config";
import { sharedSettings } from "@runtime-cloud/service-kit/settings";
import { fileURLToPath } from "node:url";

/** Defaults below the repository are shown relative to it. */
const root = fileURLToPath(new URL("../../", import.meta.url));

/** `docs/configuration.md`: the variables that every service has, then each service's own and its own defaults. */
export function configurationDocs(): string {
  const shared = describeSettings(sharedSettings);
  const services = [iacProvisioning, executionCapacity, runtimeEnvironment];
  return [
    "# Configuration",
    "",
    "Generated from the settings in the code; `npm run gen` writes this page anew. Every service reads environment",
    "variables and nothing else. A wrong or missing one stops it at its start with exit code 78 and names all of them;",
    "what only the machine can tell, such as a directory that isn't there, is checked once the rest is right.",
    "",
    "## Every service",
    "",
    ...table(shared),
    ...services.flatMap(({ name, settings }) => [
      "",
      `## ${name}`,
      "",
      ...table(describeSettings(settings).filter((setting) => !shared.some((common) => same(common, setting)))),
    ]),
    "",
  ].join("\n");
}

function same(one: SettingDescription, other: SettingDescription): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function table(settings: readonly SettingDescription[]): string[] {
  const rows = settings.map(({ variable, description, default: preset, required }) => {
    const unset = required ? "required" : preset ? `\`${preset.replace(root, "")}\`` : "–";
    return `| \`${variable}\` | ${description.replaceAll("|", "\\|")} | ${unset} |`;
  });
  return ["| Variable | What it wants | When unset |", "| --- | --- | --- |", ...rows];
}
