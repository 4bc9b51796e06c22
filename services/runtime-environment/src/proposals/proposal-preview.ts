import { create, fromJsonString, type JsonObject, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  type ProposalPreview,
  ProposalPreview_State as State,
  ProposalPreviewSchema,
} from "@runtime-cloud/contracts/runtimecloud/inventory/v1/proposals_pb";
import { type PlannedChange, PlannedChangeSchema } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/runs_pb";
import type { Finding, Proposal } from "../../generated/prisma/client.ts";
import { jsonColumn, valueMessage } from "../inventory/json-column.ts";

/** What a preview shows: `summary`, `changes` and `failure` of its message. */
export type PreviewContents = Pick<MessageInitShape<typeof ProposalPreviewSchema>, "summary" | "changes" | "failure">;

/** The most changes that a preview shows, and their size as JSON: GetPlan of its run has all. */
export const MAX_CHANGES = 100;
const MAX_BYTES = 128 * 1_024;
const MAX_FAILURE = 1_000;

/** A preview for its column, its changes and its failure as far as they fit. */
export function previewColumn({ changes = [], failure, ...contents }: PreviewContents) {
  const shown = create(ProposalPreviewSchema, {
    ...contents,
    ...(failure !== undefined && { failure: failure.slice(0, MAX_FAILURE) }),
  });
  let bytes = 0;
  for (const change of create(ProposalPreviewSchema, { changes }).changes.slice(0, MAX_CHANGES)) {
    bytes += sizeOf(change);
    if (bytes > MAX_BYTES) break;
    shown.changes.push(change);
  }
  return jsonColumn(toJson(ProposalPreviewSchema, shown));
}

export function previewMessage(row: PreviewRow): ProposalPreview {
  const { previewState, previewRunId, planDigest, preview } = row;
  const shown = fromJsonString(ProposalPreviewSchema, JSON.stringify(preview ?? {}), { ignoreUnknownFields: true });
  shown.state = State[previewState];
  if (previewRunId !== null) shown.provisioningRunId = previewRunId;
  if (planDigest !== null) shown.planDigest = planDigest;
  return shown;
}

/** Adopting changes parameters and no resource: each is shown as `parameters.<name>`. */
export function adoptionPreview({ before, after }: ParameterChange): PreviewContents {
  return {
    summary: {},
    changes: Object.entries(after).map(([name, value]) => ({
      address: `parameters.${name}`,
      resourceType: "parameter",
      actions: ["update"],
      before: { value: before[name] ?? null },
      after: { value },
    })),
  };
}

/** Refreshing records what was found, resource by resource. What was never recorded isn't recorded by it either. */
export function refreshPreview(findings: readonly Finding[]): PreviewContents {
  const recorded = findings.filter(({ kind }) => kind !== "RESOURCE_UNMANAGED");
  const changes = [...new Set(recorded.map(({ resource }) => resource))].map((address) =>
    refreshed(
      address,
      recorded.filter(({ resource }) => resource === address),
    ),
  );
  return { summary: { changes: changes.filter(({ after }) => after !== undefined).length }, changes };
}

/** A resource that is gone is only forgotten. */
function refreshed(address: string, findings: readonly Finding[]): MessageInitShape<typeof PlannedChangeSchema> {
  const before = Object.fromEntries(findings.map(({ attribute, declared }) => [attribute || WHOLE, plain(declared)]));
  if (findings.some(({ kind }) => kind === "RESOURCE_MISSING")) return { address, actions: ["forget"], before };
  const after = Object.fromEntries(findings.map(({ attribute, observed }) => [attribute || WHOLE, plain(observed)]));
  return { address, actions: ["update"], before, after };
}

/** Stands for an attribute where a whole resource differs. */
const WHOLE = "resource";

function plain(value: Finding["declared"]) {
  return toJson(ValueSchema, valueMessage(value));
}

function sizeOf(change: PlannedChange): number {
  return Buffer.byteLength(JSON.stringify(toJson(PlannedChangeSchema, change)));
}

/** Parameters of a specification that adopting changes, as they are and as they will be; sensitive ones masked. */
export interface ParameterChange {
  before: JsonObject;
  after: JsonObject;
}

type PreviewRow = Pick<Proposal, "previewState" | "previewRunId" | "planDigest" | "preview">;
