import { z } from "zod";
import { sha256 } from "../json/canonical-json.ts";
import type { SecretBox } from "./secret-box.ts";
import { formatStateKey, type StateKey } from "./state-key.ts";
import type { StateVersion } from "./state-store.ts";

/** A state that is larger is not kept: its program wants to be split. */
export const MAX_STATE_BYTES = 64 * 1024 * 1024;
export const MAX_LINEAGE_LENGTH = 128;
const PURPOSE = "engine-state";

const head = z.object({
  lineage: z.string().min(1).max(MAX_LINEAGE_LENGTH),
  serial: z.int().nonnegative(),
});

export type StateHead = z.output<typeof head>;

/** What every engine's state begins with; undefined when it isn't one. */
export function stateHead(content: Buffer): StateHead | undefined {
  try {
    return head.safeParse(JSON.parse(content.toString("utf8"))).data;
  } catch {
    return undefined;
  }
}

/** A state's content as a version to store. */
export function sealState(box: SecretBox, key: StateKey, content: Buffer, { lineage, serial }: StateHead) {
  const sealed = box.seal(content, PURPOSE, sealContext(key, { lineage, serial }));
  return { lineage, serial, digest: sha256(content), sealed } satisfies StateVersion;
}

/** Throws SealedValueRefused. Secret. */
export function openState(box: SecretBox, key: StateKey, version: Omit<StateVersion, "digest">): Buffer {
  return box.open(version.sealed, PURPOSE, sealContext(key, version));
}

function sealContext(key: StateKey, { lineage, serial }: StateHead): string {
  return `${formatStateKey(key)} ${lineage} ${serial}`;
}
