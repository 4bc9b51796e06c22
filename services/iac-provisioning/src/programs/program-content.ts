import { InvalidProgram, parseProgramDeclaration, PROGRAM_FILE, type ProgramDeclaration } from "./program.ts";
import { programDigest, type ProgramFile } from "./program-files.ts";

/** What a program's files say of it, wherever they came from. */
export interface ProgramContent extends ProgramDeclaration {
  readonly digest: string;
}

/** Throws InvalidProgram. */
export function readProgramContent(files: readonly ProgramFile[]): ProgramContent {
  return { ...programDeclaration(files), digest: programDigest(files) };
}

/** What its program.yaml declares. Throws InvalidProgram. */
export function programDeclaration(files: readonly ProgramFile[]): ProgramDeclaration {
  const declaration = files.find(({ path }) => path === PROGRAM_FILE);
  if (!declaration) throw new InvalidProgram(`has no ${PROGRAM_FILE} at its root${hint(files)}`);
  return parseProgramDeclaration(declaration.content.toString("utf8"));
}

function hint(files: readonly ProgramFile[]): string {
  const nested = files.find(({ path }) => path.endsWith(`/${PROGRAM_FILE}`));
  return nested ? `, only ${nested.path}: the root must be the directory that holds it` : "";
}
