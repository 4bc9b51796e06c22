import { openBackend } from "@runtime-cloud/eventing/queues/open-backend";
import { type RunningService, startService } from "@runtime-cloud/eventing/start-service";
import type { QueueBackend } from "@runtime-cloud/eventing/queues/queue-backend";
import { executionCapacity } from "@runtime-cloud/execution-capacity/definition";
import { iacProvisioning } from "@runtime-cloud/iac-provisioning/definition";
import type { ServiceName } from "@runtime-cloud/migrations/services";
import { runtimeEnvironment } from "@runtime-cloud/runtime-environment/definition";
import { readConfig } from "@runtime-cloud/service-kit/config";
import type { Logger } from "@runtime-cloud/service-kit/logger";
import { sharedSettings } from "@runtime-cloud/service-kit/settings";

/** The three services in one process, and queues of their own for whoever looks at them. */
export interface Host {
  services: Record<ServiceName, RunningService>;
  backend: QueueBackend;
  stop(): Promise<void>;
}

/** Starts the services with the variables that `variables` gives each. */
export async function startHost(
  variables: (service: ServiceName) => NodeJS.ProcessEnv,
  logger: (service: string) => Logger,
): Promise<Host> {
  const started: RunningService[] = [];
  const up = async (service: Promise<RunningService>) => {
    started.push(await service);
    return service;
  };
  const stop = async () => {
    await Promise.all(started.map((service) => service.stop()));
  };
  const iac = variables("iac-provisioning");
  try {
    const services = {
      "iac-provisioning": await up(
        startService(iacProvisioning, readConfig(iacProvisioning.settings, iac), logger("iac-provisioning")),
      ),
      "execution-capacity": await up(
        startService(
          executionCapacity,
          readConfig(executionCapacity.settings, variables("execution-capacity")),
          logger("execution-capacity"),
        ),
      ),
      "runtime-environment": await up(
        startService(
          runtimeEnvironment,
          readConfig(runtimeEnvironment.settings, variables("runtime-environment")),
          logger("runtime-environment"),
        ),
      ),
    };
    const backend = await openBackend(
      readConfig(sharedSettings, { PORT: "0", ADMIN_PORT: "0", ...iac }),
      logger("runtime-cloud-host"),
    );
    return {
      services,
      backend,
      async stop() {
        await stop();
        await backend.close();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
