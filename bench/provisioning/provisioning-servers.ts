import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createLocalIssuer, type LocalIssuer } from "@runtime-cloud/service-kit/local-issuer";
import { type BenchServers, withServers } from "../servers.ts";
import { type BareEngine, openBareEngine } from "./bare-engine.ts";
import { writePrograms } from "./bench-programs.ts";

/** The engine runs under a user of its own where the service is root, and must get to its work directory. */
export const PASSABLE = 0o711;

/** What the parts of the provisioning benchmark share. */
export interface ProvisioningServers extends BenchServers {
  readonly engine: BareEngine;
  /** Of this benchmark alone; gone at its end. */
  readonly folder: string;
  /** Where the programs are that are run. */
  readonly programs: string;
  /** The one that services trust whose LOCAL_ISSUER_FILE is `issuerFile`. */
  readonly issuer: LocalIssuer;
  readonly issuerFile: string;
}

export function withProvisioningServers<T>(work: (servers: ProvisioningServers) => Promise<T>): Promise<T> {
  return withServers(async (servers) => {
    const folder = await mkdtemp(path.join(tmpdir(), "runtime-cloud-bench-"));
    try {
      await chmod(folder, PASSABLE);
      const programs = path.join(folder, "programs");
      await writePrograms(programs);
      const issuerFile = path.join(folder, "issuer.json");
      const issuer = await createLocalIssuer({ path: issuerFile });
      const engine = await openBareEngine(folder, programs);
      return await work({ ...servers, engine, folder, programs, issuer, issuerFile });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
}
