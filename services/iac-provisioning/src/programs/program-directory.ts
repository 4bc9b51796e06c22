import { readdir } from "node:fs/promises";
import path from "node:path";
import { InvalidProgram, parseProgramDeclaration, PROGRAM_FILE, type ProgramDeclaration } from "./program.ts";
import { programDigest, readProgramFiles } from "./program-files.ts";
import { hasCode } from "./system-error.ts";
import { formatProgramVersion, isProgramName, isVersion, parseProgramVersion } from "./program-version.ts";

/** A program that lies under the programs directory; an EngineJob's `program` as it is. */
export interface Program extends ProgramDeclaration {
  /** `name@version`. */
  readonly programVersion: string;
  readonly directory: string;
  readonly digest: string;
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
    const files = await readProgramFiles(directory);
    const declaration = files.find((file) => file.path === PROGRAM_FILE);
    if (!declaration) throw new InvalidProgram(`has no ${PROGRAM_FILE}`);
    const declared = parseProgramDeclaration(declaration.content.toString("utf8"));
    return { ...declared, programVersion, directory, digest: programDigest(files) };
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
    if (error instanceof InvalidProgram) throw new InvalidProgram(`program ${programVersion}: ${error.message}`);
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
