import { InvalidProgram } from "./program.ts";
import { MAX_DEPTH } from "./program-files.ts";

/** What common file systems take as one name, and what leaves room for the directories above. */
const MAX_NAME_BYTES = 255;
const MAX_PATH_BYTES = 1024;
/** How much of a name a message repeats. */
const MAX_SHOWN = 120;

/**
 * Where an archive's entry lies in its program: a relative path with forward slashes, empty for the root itself.
 * Throws InvalidProgram for a name that could lead out of it, or that no file should have.
 */
export function archivePath(name: string): string {
  const path = name.replace(/^(?:\.\/)+/, "");
  if (path === "" || path === ".") return "";
  const problem = problemOf(path);
  if (problem !== undefined) throw new InvalidProgram(`${shownName(name)}: ${problem}`);
  return path;
}

/** A name that anybody may have chosen, fit for a message. */
export function shownName(name: string): string {
  return JSON.stringify(name.length > MAX_SHOWN ? `${name.slice(0, MAX_SHOWN)}…` : name);
}

function problemOf(path: string): string | undefined {
  const steps = path.split("/");
  if (/\p{Cc}/u.test(path)) return "a name must not hold NUL or other control characters";
  if (path.includes("\\")) return "a name must not hold a backslash: separate directories by /";
  if (path.includes("\uFFFD")) return "a name must be UTF-8";
  if (path.startsWith("/")) return "an absolute path is not allowed: paths start at the program's root";
  if (steps.includes("..")) return ".. is not allowed: it leads out of the program";
  if (steps.some((step) => step === "" || step === ".")) return "empty steps and . are not allowed in a path";
  if (steps.length > MAX_DEPTH) return `directories are nested more than ${MAX_DEPTH} deep`;
  if (steps.some((step) => Buffer.byteLength(step) > MAX_NAME_BYTES)) {
    return `a name is longer than ${MAX_NAME_BYTES} bytes`;
  }
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return `a path is longer than ${MAX_PATH_BYTES} bytes`;
  return undefined;
}
