import { readdir } from "node:fs/promises";
import path from "node:path";
import { InvalidProgram } from "./program.ts";
import { type ProgramContent, readProgramContent } from "./program-content.ts";
import { readProgramFiles } from "./program-files.ts";
import { hasCode } from "../system-error.ts";
import { formatProgramVersion, isProgramName, isVersion, parseProgramVersion } from "./program-version.ts";

/** A program that lies in a directory; an EngineJob's `program` as it is. */
export interface Program extends ProgramContent {
  /** `name@version`. */
  readonly programVersion: string;
  readonly directory: string;
}

/**
 * Loads `name@version` from `<programsDirectory>/<name>/<version>/`. Undefined when the text is no program version or
 * there is no such program; throws InvalidProgram, naming the program, when its content makes no sense.
 */
export async function loadProgram(programsDirectory: string, programVersion: string): Promise<Program | undefined> {
  const parsed = parseProgramVersion(programVersion);
  if (!parsed) return undefined;
  const directory = path.resolve(programsDirectory, parsed.name, parsed.version);
  try {
    return { ...readProgramContent(await readProgramFiles(directory)), programVersion, directory };
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
    if (error instanceof InvalidProgram) throw new InvalidProgram(error.problem, programVersion);
    throw error;
  }
}

/** Every `name@version` under the programs directory, sorted; its programs need not be valid. */
export async function listPrograms(programsDirectory: string): Promise<string[]> {
  const names = (await directoriesIn(programsDirectory)).filter(isProgramName);
  const found = await Promise.all(
    names.map(async (name) => {
      const versions = (await directoriesIn(path.join(programsDirectory, name))).filter(isVersion);
      return versions.map((version) => formatProgramVersion({ name, version }));
    }),
  );
  return found.flat().sort();
}

async function directoriesIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}
