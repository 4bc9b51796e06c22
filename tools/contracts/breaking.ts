import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { takenFromEvents } from "./event-options.ts";
import { comparedBy, type Published } from "./published.ts";

const WAY_OUT = `Who uses the published contract would break. Keep what is published and add beside it: a new field with a new number,
or, for what must change, a copy of the message in a package \`…v2\` with its own topic; the old one goes on until none
reads it.`;

/** Why who uses the published contract couldn't go on with the proto files of now, and what to do; undefined if they can. */
export async function breaking(root: string, published: Published): Promise<string | undefined> {
  const compared = await comparedBy(root, published);
  const image = await readFile(join(root, published.image));
  const problems = [...(compared.ok ? [] : [compared.output]), ...takenFromEvents(image)];
  if (problems.length === 0) return undefined;
  return `The contract differs from version ${published.version}:\n${problems.join("\n")}\n\n${WAY_OUT}`;
}
