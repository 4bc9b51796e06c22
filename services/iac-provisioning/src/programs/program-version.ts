import { InvalidInput } from "@runtime-cloud/service-kit/errors";

/** `web-service`, `environment-baseline`: what a program's directory is called. */
const PROGRAM_NAME = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
/** `1.0.0`, `2.1.0-rc.1`. */
const VERSION = /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z]+(?:[.-][0-9A-Za-z]+)*)?$/;
const MAX_NAME_LENGTH = 63;
const MAX_VERSION_LENGTH = 64;

export interface ProgramVersion {
  readonly name: string;
  readonly version: string;
}

/** Reads `name@version`; undefined when it is anything else, so no path can be smuggled in. */
export function parseProgramVersion(text: string): ProgramVersion | undefined {
  const at = text.indexOf("@");
  const name = text.slice(0, Math.max(at, 0));
  const version = text.slice(at + 1);
  return isProgramName(name) && isVersion(version) ? { name, version } : undefined;
}

/** Reads a request's `programVersion`. Throws InvalidInput. */
export function requestedVersion({ programVersion }: { programVersion: string }): ProgramVersion {
  const version = parseProgramVersion(programVersion);
  if (version) return version;
  const description =
    "is not name@version, like web-service@1.0.0: the name in words of a-z and 0-9 with hyphens between them, " +
    "the version as three numbers and perhaps a pre-release";
  throw new InvalidInput([{ field: "programVersion", description }]);
}

export function formatProgramVersion({ name, version }: ProgramVersion): string {
  return `${name}@${version}`;
}

export function isProgramName(text: string): boolean {
  return text.length <= MAX_NAME_LENGTH && PROGRAM_NAME.test(text);
}

export function isVersion(text: string): boolean {
  return text.length <= MAX_VERSION_LENGTH && VERSION.test(text);
}
