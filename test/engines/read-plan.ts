import { scrubber } from "@runtime-cloud/iac-provisioning/engines/redaction/scrub";
import {
  terraformPlanReader,
  type TerraformPlan,
} from "@runtime-cloud/iac-provisioning/engines/terraform/terraform-plan";
import type { PlannedChange } from "@runtime-cloud/iac-provisioning/engines/engine-event";
import { readFile } from "node:fs/promises";
import path from "node:path";

/** A plan of `plans/`, read in pieces that end anywhere. */
export async function planOfFile(name: string, pieceLength = 1_000): Promise<TerraformPlan> {
  return readPlan(await readFile(path.join(import.meta.dirname, "plans", name)), pieceLength);
}

/** A plan of these fields. */
export function planOf(fields: object): TerraformPlan {
  return readPlan(Buffer.from(JSON.stringify({ format_version: "1.2", ...fields })));
}

export function readPlan(document: Buffer, pieceLength = document.length): TerraformPlan {
  const reader = terraformPlanReader();
  for (let start = 0; start < document.length; start += pieceLength) {
    reader.write(document.subarray(start, start + pieceLength));
  }
  return reader.end(scrubber);
}

/** The first change of an address; the test fails where there is none. */
export function changeOf({ changes }: TerraformPlan, address: string): PlannedChange {
  const found = changes.find((change) => change.address === address);
  if (!found) throw new Error(`the plan has no change of ${address}`);
  return found;
}

/** One resource's change, as `show -json` has it. */
export function resourceChange(address: string, change: object, more: object = {}): object {
  return { address, mode: "managed", type: "vm", name: "x", change, ...more };
}
