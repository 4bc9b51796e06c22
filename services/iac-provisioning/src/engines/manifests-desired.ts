import type { JsonObject } from "../programs/canonical-json.ts";
import { InvalidProgram, parseProgramDeclaration, PROGRAM_FILE } from "../programs/program.ts";
import { programDigest, readProgramFiles, type ProgramFile } from "../programs/program-files.ts";
import type { EngineJob } from "./engine.ts";
import { isManifestFile, parseManifest, printManifest } from "./manifest-document.ts";
import { renderText, renderValue } from "./manifests-template.ts";

const TEMPLATES = "templates/";
/** No hidden files, no way up and no way out. */
const SAFE_PATH = /^(?!.*(?:^|\/)\.)[^\0\\/]+(?:\/[^\0\\/]+)*$/;

/** What a program wants to be there. */
export interface DesiredManifests {
  /** Each file's text by its address, which is its path under the environment's directory. */
  readonly files: ReadonlyMap<string, string>;
  readonly outputs: JsonObject;
}

export const NOTHING_DESIRED: DesiredManifests = { files: new Map(), outputs: {} };

/** Renders a job's program with its parameters. Throws InvalidProgram. */
export async function desiredManifests({ program, parameters }: EngineJob): Promise<DesiredManifests> {
  const files = await readProgramFiles(program.directory);
  try {
    if (programDigest(files) !== program.digest)
      throw new InvalidProgram(`its content is not that of digest ${program.digest}`);
    const rendered = files.filter(({ path }) => path.startsWith(TEMPLATES)).map((file) => renderFile(file, parameters));
    const repeated = rendered.find(([address], index) => rendered.findIndex(([other]) => other === address) !== index);
    if (repeated) throw new InvalidProgram(`two templates become ${repeated[0]}`);
    return { files: new Map(rendered.sort(([a], [b]) => (a < b ? -1 : 1))), outputs: renderOutputs(files, parameters) };
  } catch (error) {
    if (!(error instanceof InvalidProgram)) throw error;
    throw new InvalidProgram(`program ${program.programVersion}: ${error.message}`);
  }
}

function renderFile({ path, content }: ProgramFile, parameters: JsonObject): [address: string, text: string] {
  if (!isManifestFile(path)) throw new InvalidProgram(`${path}: a template is a .yaml, .yml or .json file`);
  const template = parseManifest(path, content.toString("utf8"));
  if (template === undefined) throw new InvalidProgram(`${path}: neither YAML nor JSON as its name says`);
  const address = renderText(path.slice(TEMPLATES.length), parameters, path);
  if (!SAFE_PATH.test(address))
    throw new InvalidProgram(
      `${path}: becomes ${JSON.stringify(address)}, which is no path inside the environment's directory`,
    );
  return [address, printManifest(address, renderValue(template, parameters, path))];
}

function renderOutputs(files: readonly ProgramFile[], parameters: JsonObject): JsonObject {
  const declaration = files.find(({ path }) => path === PROGRAM_FILE)?.content.toString("utf8") ?? "";
  const { outputs } = parseProgramDeclaration(declaration);
  return Object.fromEntries(
    Object.entries(outputs).map(([name, template]) => [
      name,
      renderValue(template, parameters, `${PROGRAM_FILE}: outputs.${name}`),
    ]),
  );
}
