import type { JsonObject, JsonValue } from "../../json/canonical-json.ts";
import { InvalidProgram, PROGRAM_FILE } from "../../programs/program.ts";
import { programDeclaration } from "../../programs/program-content.ts";
import { programDigest, readProgramFiles, type ProgramFile } from "../../programs/program-files.ts";
import type { EngineJob } from "../engine.ts";
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

/** A document of the program before its parameters are put in, and the address that it becomes. */
export interface ManifestTemplate {
  readonly path: string;
  readonly address: string;
  readonly template: JsonValue;
}

/** Renders a job's program with its parameters. Throws InvalidProgram. */
export async function desiredManifests(job: EngineJob): Promise<DesiredManifests> {
  const files = await programFiles(job);
  return naming(job, () => renderManifests(files, job.parameters));
}

/** The files of a job's program, checked against its digest. Throws InvalidProgram. */
export async function programFiles({ program }: EngineJob): Promise<readonly ProgramFile[]> {
  const files = await readProgramFiles(program.directory);
  if (programDigest(files) === program.digest) return files;
  throw new InvalidProgram(`program ${program.programVersion}: its content is not that of digest ${program.digest}`);
}

/** Renders a program's files. Throws InvalidProgram, which doesn't name the program. */
export function renderManifests(files: readonly ProgramFile[], parameters: JsonObject): DesiredManifests {
  const rendered = manifestTemplates(files, parameters).map(
    ({ path, address, template }) =>
      [address, printManifest(address, renderValue(template, parameters, path))] as const,
  );
  const repeated = rendered.find(([address], index) => rendered.findIndex(([other]) => other === address) !== index);
  if (repeated) throw new InvalidProgram(`two templates become ${repeated[0]}`);
  return {
    files: new Map(rendered.sort(([a], [b]) => (a < b ? -1 : 1))),
    outputs: renderOutputs(files, parameters),
  };
}

export function manifestTemplates(files: readonly ProgramFile[], parameters: JsonObject): ManifestTemplate[] {
  return files.filter(({ path }) => path.startsWith(TEMPLATES)).map((file) => readTemplate(file, parameters));
}

function naming<T>({ program }: EngineJob, render: () => T): T {
  try {
    return render();
  } catch (error) {
    if (!(error instanceof InvalidProgram)) throw error;
    throw new InvalidProgram(`program ${program.programVersion}: ${error.message}`);
  }
}

function readTemplate({ path, content }: ProgramFile, parameters: JsonObject): ManifestTemplate {
  if (!isManifestFile(path)) throw new InvalidProgram(`${path}: a template is a .yaml, .yml or .json file`);
  const template = parseManifest(path, content.toString("utf8"));
  if (template === undefined) throw new InvalidProgram(`${path}: neither YAML nor JSON as its name says`);
  const address = renderText(path.slice(TEMPLATES.length), parameters, path);
  if (SAFE_PATH.test(address)) return { path, address, template };
  throw new InvalidProgram(
    `${path}: becomes ${JSON.stringify(address)}, which is no path inside the environment's directory`,
  );
}

function renderOutputs(files: readonly ProgramFile[], parameters: JsonObject): JsonObject {
  const { outputs } = programDeclaration(files);
  return Object.fromEntries(
    Object.entries(outputs).map(([name, template]) => [
      name,
      renderValue(template, parameters, `${PROGRAM_FILE}: outputs.${name}`),
    ]),
  );
}
