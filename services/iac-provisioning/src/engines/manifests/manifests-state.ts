import { z } from "zod";
import { parsedJsonObject } from "../../json/parsed-json.ts";
import type { JsonObject } from "../../json/canonical-json.ts";
import { type StateDocument, StateRefused } from "../state-client.ts";

const FORMAT = 1;
const stateFile = z.object({
  format: z.literal(FORMAT),
  files: z.record(z.string(), z.string()),
  outputs: parsedJsonObject,
  secrets: z.array(z.string()),
});

/**
 * What was last applied: which files are the engine's own, and with what text. It is kept at the state backend, not
 * beside the files, so that losing the directory reads as losing its files. Secret.
 */
export interface ManifestRecord {
  readonly files: ReadonlyMap<string, string>;
  readonly outputs: JsonObject;
  /** What of it must not be shown, even when the parameters are others by now. */
  readonly secrets: readonly string[];
}

const ANOTHER_ENGINES =
  "this environment's state was written by another engine than manifests: tear down what that engine's program applied " +
  "before a program of this one is planned";

export const NOTHING_RECORDED: ManifestRecord = { files: new Map(), outputs: {}, secrets: [] };

/** Throws StateRefused for what another engine wrote. */
export function parseRecord({ text }: StateDocument): ManifestRecord {
  if (text === "") return NOTHING_RECORDED;
  const state = stateFile.safeParse(JSON.parse(text));
  if (!state.success) throw new StateRefused(ANOTHER_ENGINES);
  const { files, ...rest } = state.data;
  return { files: new Map(Object.entries(files)), ...rest };
}

export function printRecord(lineage: string, serial: number, { files, outputs, secrets }: ManifestRecord): string {
  return JSON.stringify({ format: FORMAT, lineage, serial, files: Object.fromEntries(files), outputs, secrets });
}

export function sameRecord(a: ManifestRecord, b: ManifestRecord): boolean {
  return printRecord("", 0, sorted(a)) === printRecord("", 0, sorted(b));
}

function sorted({ files, outputs, secrets }: ManifestRecord): ManifestRecord {
  return { files: new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1))), outputs, secrets: [...secrets].sort() };
}
