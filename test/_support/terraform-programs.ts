import type { Stage } from "@runtime-cloud/runtime-cloud-host/story/stage";
import { publish } from "./drifting-environments.ts";

/** A resource that is nothing but what its state says. */
export const QUEUE = "queue@1.0.0";
const QUEUE_FILES = {
  "program.yaml": `
engine: terraform
description: One queue.
parameters:
  size: { type: integer, default: 3 }
`,
  "main.tf": `
variable "size" { type = number }
resource "terraform_data" "queue" { input = { size = var.size } }
`,
};

/** Has as its components what a list says, which whoever deploys them keeps. */
export const LISTED = "listed@1.0.0";
const LISTED_FILES = {
  "program.yaml": `
engine: terraform
description: What a list says runs.
parameters:
  list: { type: string, required: true }
`,
  "main.tf": `
variable "list" { type = string }
resource "terraform_data" "list" { input = var.list }
output "components" { value = jsondecode(file(var.list)) }
`,
};

/** Has them as the tenant's own programs. */
export async function publishTerraformPrograms(stage: Stage): Promise<void> {
  await publish(stage, QUEUE, QUEUE_FILES);
  await publish(stage, LISTED, LISTED_FILES);
}
