import { stateHead } from "./state-version.ts";

const NO_LINEAGE = /"lineage":\s*""/;
const NO_SERIAL = /"serial":\s*0\b/;

/**
 * Names the history of a state that has none: so an engine leaves it when it could not even look whether there was one
 * before. Changes its text, since its numbers may be larger than this process can read.
 */
export function completeState(content: Buffer, newLineage: () => string): Buffer {
  if (stateHead(content)) return content;
  const text = content.toString("utf8");
  return Buffer.from(text.replace(NO_LINEAGE, `"lineage": "${newLineage()}"`).replace(NO_SERIAL, '"serial": 1'));
}
