import { freePort } from "@runtime-cloud/local-servers/ports";
import type { ServiceName } from "@runtime-cloud/migrations/services";
import { startServiceProcess } from "@runtime-cloud/runtime-cloud-host/service-process";

/** A service as it is deployed: a process of its own, at ports that were free. */
export interface RunningProcess {
  /** `host:port` of its API. */
  readonly address: string;
  readonly adminUrl: string;
  stop(): Promise<void>;
}

/** Resolves when it is ready. `variables` are those that it gets beside its ports and what it logs. */
export async function runService(service: ServiceName, variables: NodeJS.ProcessEnv): Promise<RunningProcess> {
  const [api, admin] = [await freePort(), await freePort()];
  const running = startServiceProcess(service, {
    LOG_LEVEL: "warn",
    LOG_FORMAT: "pretty",
    ...variables,
    PORT: String(api),
    ADMIN_PORT: String(admin),
  });
  try {
    await running.ready();
  } catch (error) {
    await running.stop();
    throw error;
  }
  return { address: `127.0.0.1:${api}`, adminUrl: `http://127.0.0.1:${admin}`, stop: () => running.stop() };
}
