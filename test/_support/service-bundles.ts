import { rmSync } from "node:fs";
import { mkdir, mkdtemp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { serviceNames } from "@runtime-cloud/migrations/services";
import { build, type Plugin, stop } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Makes one file of plain JavaScript of each service as its sources are now, `<service>.mjs`, and `probe.mjs` of the one
 * that stands for any; answers their folder, which is gone when this process ends. More than half of a process's start
 * from the sources is their translation, module by module, and a run of the tests starts some sixty.
 */
export async function bundleServices(): Promise<string> {
  const parent = join(root, ".data");
  await mkdir(parent, { recursive: true });
  // Below the root, whose node_modules has the packages that aren't ours.
  const folder = await mkdtemp(join(parent, "service-bundles-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  await build({
    absWorkingDir: root,
    entryPoints: [
      ...serviceNames.map((service) => ({ in: `services/${service}/src/main.ts`, out: service })),
      { in: "test/service-kit/probe-main.ts", out: "probe" },
    ],
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "warning",
    plugins: [otherPackagesStayOut, modulesKeepTheirPlace],
  });
  // Else its own process stays beside the tests.
  await stop();
  return folder;
}

const otherPackagesStayOut: Plugin = {
  name: "other packages stay out",
  setup({ onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
      kind === "entry-point" || path.startsWith("@runtime-cloud/") ? undefined : { path, external: true },
    );
  },
};

/** A module finds the files beside it by its own address. */
const modulesKeepTheirPlace: Plugin = {
  name: "modules keep their place",
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      return { loader: "ts", contents: source.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)) };
    });
  },
};
