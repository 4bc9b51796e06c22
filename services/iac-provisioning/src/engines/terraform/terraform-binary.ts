import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import path from "node:path";
import { messageOf } from "../../system-error.ts";
import { EngineUnavailable } from "../engine-unavailable.ts";
import type { EngineVersion } from "../engine.ts";
import { run } from "../sandbox/subprocess.ts";

/** OpenTofu first: it is the free one. */
const BINARY_NAMES = ["tofu", "terraform"] as const;
const VERSION_LINE = /^(OpenTofu|Terraform) v(\S+)/;
const VERSION_TIMEOUT_MS = 20_000;
const INSTALL_HINT =
  "install OpenTofu (https://opentofu.org/docs/intro/install) or Terraform 1.5 or newer, or set IAC_ENGINE_BIN to the binary";

export interface TerraformLookup {
  /** IAC_ENGINE_BIN: a path, or a name to find on the search path. */
  readonly binary?: string;
  /** Directories in the form of PATH. */
  readonly searchPath: string;
}

export interface TerraformBinary {
  readonly path: string;
  readonly version: EngineVersion;
}

/** Finds the CLI and asks its version. Throws EngineUnavailable. */
export async function findTerraform(lookup: TerraformLookup): Promise<TerraformBinary> {
  const binary = await locateTerraform(lookup);
  return { path: binary, version: await askVersion(binary) };
}

/** The CLI's path, without starting it. Throws EngineUnavailable. */
export async function locateTerraform({ binary, searchPath }: TerraformLookup): Promise<string> {
  if (binary !== undefined && binary.includes(path.sep)) {
    const absolute = path.resolve(binary);
    if (await isExecutable(absolute)) return absolute;
    throw new EngineUnavailable(`IAC_ENGINE_BIN names ${absolute}, which is not an executable file: ${INSTALL_HINT}`);
  }
  const names = binary === undefined ? BINARY_NAMES : [binary];
  const directories = searchPath.split(path.delimiter).filter((directory) => path.isAbsolute(directory));
  for (const candidate of names.flatMap((name) => directories.map((directory) => path.join(directory, name)))) {
    if (await isExecutable(candidate)) return candidate;
  }
  throw new EngineUnavailable(`the terraform engine found no ${names.join(" or ")} on the PATH: ${INSTALL_HINT}`);
}

async function askVersion(binary: string): Promise<EngineVersion> {
  const signals = { interrupt: new AbortController().signal, kill: AbortSignal.timeout(VERSION_TIMEOUT_MS) };
  const environment = { CHECKPOINT_DISABLE: "1", HOME: "/nonexistent" };
  try {
    const command = { binary, args: ["version"], directory: "/", environment, signals };
    for await (const version of run(command, ({ line }) => versionsIn(line))) return version;
  } catch (error) {
    throw new EngineUnavailable(`${binary} does not start (${messageOf(error)}): ${INSTALL_HINT}`);
  }
  throw new EngineUnavailable(
    `${binary} says neither "Terraform v…" nor "OpenTofu v…" when asked its version: ${INSTALL_HINT}`,
  );
}

function versionsIn(line: string): EngineVersion[] {
  const [, product, version] = VERSION_LINE.exec(line) ?? [];
  return product === undefined || version === undefined ? [] : [{ product: product.toLowerCase(), version }];
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
