import { freePort } from "@runtime-cloud/local-servers/ports";
import type { ServiceName } from "@runtime-cloud/migrations/services";
import type { LocalInfrastructure } from "./local-infrastructure.ts";
import type { LocalFolders } from "./local-run.ts";
import { localVariables } from "./local-settings.ts";
import { type ServiceProcess, startServiceProcess } from "./service-process.ts";

/** The three services as processes of this machine, each at a port that it keeps when it is started again. */
export interface Deployment {
  urls: Record<ServiceName, string>;
  variables(service: ServiceName): NodeJS.ProcessEnv;
  /** Resolves when the service is ready. */
  start(service: ServiceName): Promise<void>;
  /** As a crash would. */
  kill(service: ServiceName): Promise<void>;
  /** Ends what runs in good order. */
  stop(): Promise<void>;
}

export interface DeploymentOptions {
  infrastructure: LocalInfrastructure;
  folders: LocalFolders;
  /** Variables that every service gets beside the defaults of a local run. */
  env: NodeJS.ProcessEnv;
  queuePrefix: string;
  baselineProgram: string;
  logLevel: string;
}

export async function deployment(options: DeploymentOptions): Promise<Deployment> {
  const ports = {
    "iac-provisioning": await portPair(),
    "execution-capacity": await portPair(),
    "runtime-environment": await portPair(),
  };
  const running = new Map<ServiceName, ServiceProcess>();
  const variables = (service: ServiceName) => ({
    ...localVariables(service, { ...options, provisioningPort: ports["iac-provisioning"].api }),
    PORT: String(ports[service].api),
    ADMIN_PORT: String(ports[service].admin),
  });
  const urlOf = (service: ServiceName) => `http://127.0.0.1:${ports[service].api}`;

  return {
    urls: {
      "iac-provisioning": urlOf("iac-provisioning"),
      "execution-capacity": urlOf("execution-capacity"),
      "runtime-environment": urlOf("runtime-environment"),
    },
    variables,
    async start(service) {
      const process = startServiceProcess(service, variables(service));
      running.set(service, process);
      await process.ready();
    },
    async kill(service) {
      await running.get(service)?.kill();
      running.delete(service);
    },
    async stop() {
      await Promise.all([...running.values()].map((process) => process.stop()));
      running.clear();
    },
  };
}

async function portPair(): Promise<{ api: number; admin: number }> {
  return { api: await freePort(), admin: await freePort() };
}
