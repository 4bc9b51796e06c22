import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

const ownPackage = z.object({ name: z.string(), version: z.string(), description: z.string() });
const rootPackage = z.object({
  license: z.string(),
  engines: z.record(z.string(), z.string()),
  dependencies: z.record(z.string(), z.string()),
});

/** Name, version and description of the contracts package, as the repository holds them. */
export type OwnPackage = z.output<typeof ownPackage>;

export async function readOwnPackage(root: string): Promise<OwnPackage> {
  return ownPackage.parse(JSON.parse(await readFile(join(root, "libs/contracts/package.json"), "utf8")));
}

/**
 * The package.json of what is published: the workspace's own name and version, exports of compiled files, and as
 * dependencies the packages that `sources` (TypeScript files) import, each from the version we test with upwards.
 */
export async function manifest(root: string, sources: readonly string[]): Promise<object> {
  const { name, version, description } = await readOwnPackage(root);
  const { license, engines, dependencies } = rootPackage.parse(
    JSON.parse(await readFile(join(root, "package.json"), "utf8")),
  );
  const imported = await Promise.all(sources.map(importedPackages));
  const needed = [...new Set(imported.flat())].sort();
  return {
    name,
    version,
    description,
    license,
    type: "module",
    sideEffects: false,
    engines,
    exports: {
      "./events/*": { types: "./dist/src/*.d.ts", default: "./dist/src/*.js" },
      "./schemas/*": "./schemas/*",
      "./proto/*": "./proto/*",
      "./catalogue.json": "./catalogue.json",
      "./package.json": "./package.json",
      "./*": { types: "./dist/generated/*.d.ts", default: "./dist/generated/*.js" },
    },
    files: ["dist", "proto", "schemas", "catalogue.json"],
    dependencies: Object.fromEntries(needed.map((dependency) => [dependency, rangeOf(dependency, dependencies)])),
  };
}

async function importedPackages(source: string): Promise<string[]> {
  const { preProcessFile } = await import("typescript");
  return preProcessFile(await readFile(source, "utf8")).importedFiles.flatMap(
    ({ fileName }) => packageOf(fileName) ?? [],
  );
}

/** `@bufbuild/protobuf/wkt` is in `@bufbuild/protobuf`; undefined for a relative path and for Node's own. */
function packageOf(specifier: string): string | undefined {
  return /^(?!\.|node:)((?:@[^/]+\/)?[^/]+)/.exec(specifier)?.[1];
}

function rangeOf(dependency: string, versions: Readonly<Record<string, string>>): string {
  const version = versions[dependency];
  if (version === undefined)
    throw new Error(`The contracts import ${dependency}, which package.json doesn't depend on`);
  return `^${version}`;
}
