import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { readState } from "@runtime-cloud/iac-provisioning/engines/state-client";
import { postgresStateCredentials } from "@runtime-cloud/iac-provisioning/state/postgres-state-credentials";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import type { Contestant, Round } from "../rounds.ts";
import type { BareEngine, BareJob } from "./bare-engine.ts";
import { MANY_RESOURCES } from "./bench-programs.ts";
import { declareInNewEnvironment, runToApplied } from "./bench-runs.ts";
import type { ProvisioningService } from "./provisioning-service.ts";
import { checkRecorded } from "./recorded-state.ts";
import { checkApplied } from "./run-census.ts";
import { phasesOf } from "./run-phases.ts";

const PASSWORD_BYTES = 32;
const TOKEN = "a-token-that-nobody-may-see";
const SECONDS = 1_000;

/** The CLI's apply of so many new resources, with its state in a file. */
export function localApply(engine: BareEngine, resources: number): Contestant {
  return {
    name: `local_${resources}`,
    round: () => bareApply(engine, resources, {}, (stateFile) => readFile(stateFile, "utf8")),
  };
}

/** The same, with its state at the service's backend. */
export function backendApply(engine: BareEngine, service: ProvisioningService, resources: number): Contestant {
  return {
    name: `state_backend_${resources}`,
    async round() {
      const state = await stateAccess(service);
      return bareApply(engine, resources, { state }, async () => (await readState(state)).text);
    },
  };
}

/** The same as a run of the service: with a receipt, a log and a history of it. */
export function runApply(service: ProvisioningService, resources: number): Contestant {
  return {
    name: `run_${resources}`,
    async round() {
      const { aside, tenantId } = service;
      const parameters = { size: resources, token: TOKEN };
      const specificationId = await declareInNewEnvironment(service, MANY_RESOURCES, parameters);
      const { runId } = await runToApplied(service, specificationId);
      const { applying } = await phasesOf(aside, tenantId, runId);
      return {
        figures: { apply_seconds: applying / SECONDS },
        check: () => checkApplied(aside, [runId], resources),
      };
    },
  };
}

async function bareApply(
  engine: BareEngine,
  resources: number,
  where: Pick<BareJob, "state">,
  stateOf: (stateFile: string) => Promise<string>,
): Promise<Round> {
  const parameters = { size: resources, token: TOKEN };
  const workspace = await engine.open({ programVersion: MANY_RESOURCES, parameters, ...where });
  await workspace.run("init");
  await workspace.run("plan");
  const ms = await workspace.run("apply");
  const state = await stateOf(workspace.stateFile);
  await workspace.close();
  return { figures: { apply_seconds: ms / SECONDS }, check: async () => checkRecorded(state, resources) };
}

/** As a run gets it. */
async function stateAccess({ aside, stateAddress, tenantId }: ProvisioningService) {
  const credentials = postgresStateCredentials(aside, () => randomBytes(PASSWORD_BYTES).toString("base64url"));
  const holderId = uuidv7();
  const key = { tenantId, environmentId: uuidv7(), kind: "BASELINE" };
  const password = await credentials.grant({ holderId, key, epoch: 1, access: "write" });
  if (password === undefined) throw new Error("the state backend grants a new holder nothing");
  return { address: stateAddress, username: holderId, password };
}
