import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseProgramVersion } from "@runtime-cloud/iac-provisioning/programs/program-version";

/** Three small resources that need no provider and wait for nothing. */
export const THREE_RESOURCES = "three-resources@1.0.0";
/** So many resources as its parameter `size` says, each with a secret in it. */
export const MANY_RESOURCES = "many-resources@1.0.0";
/** For the engine that starts no process: one file. */
export const ONE_FILE = "one-file@1.0.0";

const FILES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  [THREE_RESOURCES]: {
    "program.yaml": `
engine: terraform
description: Three resources.
parameters:
  name: { type: string, required: true }
`,
    "main.tf": `
variable "name" { type = string }
resource "terraform_data" "network" { input = { name = "\${var.name}-network" } }
resource "terraform_data" "registry" { input = { name = "\${var.name}-registry" } }
resource "terraform_data" "subnet" { input = { network = terraform_data.network.id, zone = "a" } }
output "network_id" { value = terraform_data.network.id }
`,
  },
  [MANY_RESOURCES]: {
    "program.yaml": `
engine: terraform
description: As many resources as are asked for.
parameters:
  size: { type: integer, required: true }
  token: { type: string, required: true, sensitive: true }
`,
    "main.tf": `
variable "size" { type = number }
variable "token" {
  type      = string
  sensitive = true
}
resource "terraform_data" "item" {
  count = var.size
  input = {
    name  = "item-\${count.index}"
    zone  = "zone-\${count.index % 3}"
    owner = "platform-team"
    token = var.token
  }
}
output "size" { value = length(terraform_data.item) }
`,
  },
  [ONE_FILE]: {
    "program.yaml": `
engine: manifests
description: One file.
parameters:
  name: { type: string, required: true }
`,
    "templates/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ${name}\n",
  },
};

/** Writes the programs where a service's PROGRAMS_DIR may point. */
export async function writePrograms(programs: string): Promise<void> {
  for (const [programVersion, files] of Object.entries(FILES)) {
    for (const [name, text] of Object.entries(files)) {
      const file = path.join(directoryOf(programs, programVersion), name);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, text);
    }
  }
}

export function directoryOf(programs: string, programVersion: string): string {
  const parsed = parseProgramVersion(programVersion);
  if (!parsed) throw new Error(`${programVersion} is not name@version`);
  return path.join(programs, parsed.name, parsed.version);
}
