import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";

/** A program whose one parameter is a secret. */
export function writeSecretProgram(programs: string): Promise<string> {
  return writeProgram(programs, "secretive", {
    "program.yaml": `
engine: manifests
description: Takes a secret.
parameters:
  password: { type: string, required: true, sensitive: true }
  size: { type: integer, default: 1 }
`,
    "templates/secret.yaml": "kind: Secret\nstringData:\n  password: ${password}\n",
  });
}

/** A program of two resources, the second of which takes until the file \`gate\` is there. */
export function writeGatedProgram(programs: string): Promise<string> {
  return writeProgram(programs, "gated", {
    "program.yaml": `
engine: terraform
description: Waits for a file while it applies.
parameters:
  gate: { type: string, required: true }
`,
    "main.tf": `
variable "gate" { type = string }
resource "terraform_data" "first" { input = "first" }
resource "terraform_data" "second" {
  input = terraform_data.first.output
  provisioner "local-exec" {
    command = "while [ ! -e '\${var.gate}' ]; do sleep 0.1; done"
  }
}
`,
  });
}

/** A program of two resources and an output, all quickly made. */
export function writeTwinProgram(programs: string): Promise<string> {
  return writeProgram(programs, "twin", {
    "program.yaml": "engine: terraform\ndescription: Two resources.\n",
    "main.tf": `
resource "terraform_data" "first" { input = "first" }
resource "terraform_data" "second" { input = terraform_data.first.output }
output "second" { value = terraform_data.second.output }
output "hidden" {
  value     = "hidden-value"
  sensitive = true
}
`,
  });
}

async function writeProgram(programs: string, name: string, files: Record<string, string>): Promise<string> {
  const version = path.join(programs, name, "1.0.0");
  for (const [file, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(version, file)), { recursive: true });
    await writeFile(path.join(version, file), text);
  }
  return `${name}@1.0.0`;
}
