import { randomBytes } from "node:crypto";
import type { ServiceContext } from "@runtime-cloud/eventing/service-context";
import { listenLoopback } from "@runtime-cloud/service-kit/loopback-http";
import type { PrismaClient } from "../generated/prisma/client.ts";
import { checkInstallation } from "./check-installation.ts";
import type { Context } from "./context.ts";
import { manifestsEngine } from "./engines/manifests/manifests-engine.ts";
import { passEnvironment } from "./engines/engine-environment.ts";
import { terraformEngine } from "./engines/terraform/terraform-engine.ts";
import { openSandbox, terraformLookup } from "./open-sandbox.ts";
import type { Settings } from "./settings.ts";
import { postgresStateCredentials } from "./state/postgres-state-credentials.ts";
import { postgresStateStore } from "./state/postgres-state-store.ts";
import { parseEncryptionKeys, secretBox } from "./state/secret-box.ts";
import { STATE_BACKEND_PATH, stateBackend } from "./state/state-backend.ts";

const PASSWORD_BYTES = 32;

export interface OpenContext extends Context {
  /** Closes the state backend; engines that still run lose their state then. */
  close(): Promise<void>;
}

/**
 * Brings up what only this service has: the engines, and the state backend that they speak to. Throws ConfigError, before
 * anything is up, when this machine hasn't what the settings name.
 */
export async function openContext(shared: ServiceContext<PrismaClient, Settings>): Promise<OpenContext> {
  const { settings, pool, newId, logger } = shared;
  await checkInstallation(settings);
  const { sandbox, warnings } = await openSandbox(settings);
  // Which of the process's variables these are is known by name only, so they are no settings of their own.
  const passed = passEnvironment(settings.ENGINE_ENV_PASS ?? [], process.env);
  const missing = passed.missing.map((name) => `ENGINE_ENV_PASS names ${name}, which is not set`);
  for (const warning of [...warnings, ...missing]) logger.warn(warning);

  const box = secretBox(parseEncryptionKeys(settings.STATE_ENCRYPTION_KEYS));
  const states = postgresStateStore(pool);
  const credentials = postgresStateCredentials(pool, () => randomBytes(PASSWORD_BYTES).toString("base64url"));
  const onError = (err: unknown) => logger.error({ err }, "state backend failed");
  const backend = await listenLoopback(
    stateBackend({ store: states, credentials, box, onError }),
    settings.STATE_BACKEND_PORT,
  );

  return {
    ...shared,
    engines: {
      terraform: terraformEngine({
        ...terraformLookup(settings),
        extraEnvironment: passed.variables,
        environmentSecrets: passed.secrets,
        sandbox,
      }),
      manifests: manifestsEngine({ newId, elapsed: () => performance.now() }),
    },
    box,
    states,
    credentials,
    stateAddress: `${backend.url}${STATE_BACKEND_PATH}`,
    executorId: newId(),
    close: () => backend.close(),
  };
}
