/**
 * Reads a plan of many resources, made up while it is read, in a process of its own whose heap is bounded from outside.
 * Prints what it found as one line of JSON.
 */
import type { PlanJob } from "@runtime-cloud/iac-provisioning/engines/engine";
import { isDestructive, summarize } from "@runtime-cloud/iac-provisioning/engines/engine-result";
import { planDigest } from "@runtime-cloud/iac-provisioning/engines/plan-digest";
import { scrubber } from "@runtime-cloud/iac-provisioning/engines/redaction/scrub";
import {
  terraformPlanReader,
  type TerraformPlan,
} from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-plan";

const RESOURCES = Number(process.argv[2]);
const ACTIONS = [["no-op"], ["create"], ["update"], ["delete", "create"], ["delete"]];

function* documentText(): Generator<string> {
  yield '{"format_version":"1.2","terraform_version":"1.11.4","planned_values":{"root_module":{"resources":[';
  yield* each(plannedResource);
  yield ']}},"resource_changes":[';
  yield* each(plannedChange);
  yield '],"prior_state":{"values":{"root_module":{"child_modules":[{"address":"module.fleet","resources":[';
  yield* each(plannedResource);
  yield ']}]}}},"configuration":{"root_module":{"resources":[';
  yield* each(plannedResource);
  yield ']}},"complete":true,"errored":false}\n';
}

function* each(textOf: (index: number) => string): Generator<string> {
  for (let index = 0; index < RESOURCES; index += 1) yield index === 0 ? textOf(index) : `,${textOf(index)}`;
}

function attributes(index: number): object {
  return {
    id: `vm-${index}`,
    image: "ubuntu-24.04",
    password: secretOf(index),
    notes: `generated for ${secretOf((index + 1) % RESOURCES)}`,
    tags: { team: "core", owner: `o-${index % 7}` },
    disks: [{ size: 10, boot: true }, { size: 100 + (index % 50) }],
  };
}

function plannedResource(index: number): string {
  const values = { ...attributes(index), padding: "p".repeat(400) };
  return JSON.stringify({
    address: addressOf(index),
    mode: "managed",
    type: "vm",
    values,
    sensitive_values: SENSITIVE,
  });
}

function plannedChange(index: number): string {
  const actions = ACTIONS[index % ACTIONS.length] ?? [];
  const isCreate = actions.join() === "create";
  const isDelete = actions.join() === "delete";
  return JSON.stringify({
    address: addressOf(index),
    mode: "managed",
    type: "vm",
    change: {
      actions,
      before: isCreate ? null : attributes(index),
      after: isDelete ? null : attributes(index),
      after_unknown: {},
      before_sensitive: isCreate ? false : SENSITIVE,
      after_sensitive: isDelete ? false : SENSITIVE,
    },
  });
}

const SENSITIVE = { password: true, tags: {}, disks: [{}, {}] };

function addressOf(index: number): string {
  return `module.fleet.vm.all[${index}]`;
}

function secretOf(index: number): string {
  return `s3cret-${index}-${(index * 7919) % 10007}`;
}

/** In pieces of about this length, as a pipe would bring them. */
function* pieces(length: number): Generator<Buffer> {
  let text = "";
  for (const part of documentText()) {
    text += part;
    if (text.length < length) continue;
    yield Buffer.from(text);
    text = "";
  }
  yield Buffer.from(text);
}

function read(pieceLength: number): TerraformPlan {
  const reader = terraformPlanReader();
  for (const piece of pieces(pieceLength)) reader.write(piece);
  return reader.end(scrubber);
}

function digestOf({ changes }: TerraformPlan): string {
  return planDigest(job, { product: "terraform", version: "1.11.4" }, { lineage: "l", serial: 1 }, changes, "sha256:0");
}

const never = new AbortController().signal;
const job: PlanJob = {
  program: { directory: "/", programVersion: "fleet@1.0.0", digest: "sha256:1", network: "host" },
  parameters: {},
  state: { address: "http://localhost", username: "u", password: "p" },
  targetDirectory: "/",
  workRoot: "/",
  secrets: [],
  signals: { interrupt: never, kill: never },
  mode: "APPLY",
};

const first = read(65_536);
const found = {
  changes: first.changes.length,
  resources: first.resources.length,
  secrets: first.secrets.length,
  summary: summarize(first.changes),
  destructive: isDestructive(first.changes),
  leaks: first.changes.filter((change) => JSON.stringify(change).includes("s3cret")).length,
};
const digest = digestOf(first);
process.stdout.write(
  `${JSON.stringify({ ...found, digest, maxRssMb: Math.round(process.resourceUsage().maxRSS / 1024) })}\n`,
);
