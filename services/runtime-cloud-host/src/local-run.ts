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
}

export async function beginLocalRun(log: (line: string) => void, { redisRequired = false } = {}): Promise<LocalRun> {
  const programs = await enginePrograms(process.env, log);
  const issuer = await createLocalIssuer({ path: localIssuerFile });
  return { programs, issuer, infrastructure: await startLocalInfrastructure({ env: process.env, log, redisRequired }) };
}

export const localIssuerFile = join(dataFolder("keys"), "issuer.json");
export const targetsDir = dataFolder("environments");
