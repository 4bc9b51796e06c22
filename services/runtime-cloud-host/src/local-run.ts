import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dataFolder } from "@runtime-cloud/local-servers/data-folder";
import { createLocalIssuer, type LocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { type EnginePrograms, enginePrograms } from "./engine-programs.ts";
import { type LocalInfrastructure, startLocalInfrastructure } from "./local-infrastructure.ts";

/** What both ways of running everything on one machine begin with. */
export interface LocalRun {
  infrastructure: LocalInfrastructure;
  programs: EnginePrograms;
  /** The one that the services trust. */
  issuer: LocalIssuer;
  folders: LocalFolders;
}

export interface LocalFolders {
  issuerFile: string;
  /** Where the manifests engine keeps the environments' files. */
  targetsDir: string;
  workDir: string;
}

/** Servers and folders in `.data/`, which the next run finds again. */
export async function beginLocalRun(log: (line: string) => void): Promise<LocalRun> {
  const folders = {
    issuerFile: join(dataFolder("keys"), "issuer.json"),
    targetsDir: dataFolder("environments"),
    workDir: dataFolder("work"),
  };
  return begin(log, folders, { redisRequired: false, scratch: false });
}

/** Servers and folders of its own, gone when its infrastructure stops: beside whatever else runs here. */
export async function beginScratchRun(log: (line: string) => void): Promise<LocalRun> {
  const folder = await mkdtemp(join(tmpdir(), "runtime-cloud-"));
  const folders = {
    issuerFile: join(folder, "issuer.json"),
    targetsDir: join(folder, "environments"),
    workDir: join(folder, "work"),
  };
  const run = await begin(log, folders, { redisRequired: true, scratch: true });
  const stop = async () => {
    await run.infrastructure.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return { ...run, infrastructure: { ...run.infrastructure, stop } };
}

async function begin(
  log: (line: string) => void,
  folders: LocalFolders,
  kind: { redisRequired: boolean; scratch: boolean },
): Promise<LocalRun> {
  const programs = await enginePrograms(process.env, log);
  const issuer = await createLocalIssuer({ path: folders.issuerFile });
  return {
    programs,
    issuer,
    folders,
    infrastructure: await startLocalInfrastructure({ env: process.env, log, ...kind }),
  };
}
