import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Finding } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/findings_pb";
import type { Proposal } from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { FindingState, ProposalState } from "@runtime-cloud/contracts/runtimecloud/types/v1/inventory_pb";
import { SpecificationKind, SpecificationState } from "@runtime-cloud/contracts/runtimecloud/types/v1/provisioning_pb";
import { editFile } from "./edit-file.ts";
import { eventually } from "./eventually.ts";
import { expect } from "./narrator.ts";
import { type PromotedRelease, REPLICAS } from "./promotion.ts";
import type { Stage } from "./stage.ts";

/** A service that was scaled by hand, and the finding that says so. */
export interface HandEdit {
  environmentId: string;
  findingId: string;
  file: string;
  /** The file's text and when it was written: it changes with whoever writes it. */
  edited: string;
}

/** How many replicas there are from then on. */
export const SCALED = 5;

/** Somebody edits a file, and an observation finds it. */
export async function serviceIsScaledByHand(stage: Stage, release: PromotedRelease): Promise<HandEdit> {
  const { environmentId, directory } = release;
  const file = join(directory, "deployment.yaml");
  stage.narrator.chapter("5. Somebody scales the service by hand, and it is to stay so");
  return stage.narrator.step(
    `an observation finds deployment.yaml spec.replicas edited: ${REPLICAS} → ${SCALED}`,
    async () => {
      await editFile(file, (text) => text.replace(`replicas: ${REPLICAS}`, `replicas: ${SCALED}`));
      const edited = await writing(file);
      await stage.environments.observeEnvironment({ environmentId });
      const { findings } = await stage.environments.listFindings({ environmentId, state: FindingState.OPEN });
      const [finding, another] = findings;
      expect(finding !== undefined && another === undefined, `it found ${findings.length} drifts`);
      expect(driftIn(finding) === `deployment.yaml spec.replicas ${REPLICAS} → ${SCALED}`, driftIn(finding));
      return { environmentId, findingId: finding.findingId, file, edited };
    },
  );
}

export async function wasNotTouched({ file, edited }: HandEdit): Promise<void> {
  expect((await writing(file)) === edited, `${file} was written`);
}

/** Fails the step unless these are the environment's releases, newest first: `2 APPLIED, 1 SUPERSEDED`. */
export async function releasesAre({ provisioning }: Stage, { environmentId }: HandEdit, wanted: string): Promise<void> {
  const { specifications } = await provisioning.listSpecifications({ environmentId, kind: SpecificationKind.RELEASE });
  const seen = specifications.map(({ version, state }) => `${version} ${SpecificationState[state]}`).join(", ");
  expect(seen === wanted, `the releases are ${seen}`);
}

/** Resolves once the proposal is COMPLETED, and the look after its run has the finding in `wanted`. */
export function findingEndsIn(stage: Stage, edit: HandEdit, { proposalId }: Proposal, wanted: FindingState) {
  const { environments } = stage;
  return eventually(`COMPLETED and ${FindingState[wanted]}`, async () => {
    const { proposal } = await environments.getProposal({ proposalId });
    const { findings } = await environments.listFindings({ environmentId: edit.environmentId });
    const state = findings.find(({ findingId }) => findingId === edit.findingId)?.state ?? FindingState.UNSPECIFIED;
    if (proposal?.state === ProposalState.COMPLETED && state === wanted) return true;
    throw new Error(`the proposal is ${ProposalState[proposal?.state ?? 0]}, the finding ${FindingState[state]}`);
  });
}

function driftIn({ resource, attribute, declared, observed }: Finding): string {
  return `${resource} ${attribute} ${JSON.stringify(declared?.kind.value)} → ${JSON.stringify(observed?.kind.value)}`;
}

async function writing(file: string): Promise<string> {
  const [text, { mtimeMs }] = await Promise.all([readFile(file, "utf8"), stat(file)]);
  return `${mtimeMs} ${text}`;
}
