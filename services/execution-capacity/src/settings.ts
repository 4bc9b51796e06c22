import { port, sharedSettings, url } from "@runtime-cloud/service-kit/settings";
import type { z } from "zod";

/** On one machine, at the port that IaCProvisioningService takes by itself. */
const LOCAL_PROVISIONING = "http://127.0.0.1:7101";

export const settings = sharedSettings.safeExtend({
  PORT: port("the port of the API: Connect, gRPC and gRPC-Web").default(7102),
  ADMIN_PORT: port("the port of the admin server: health, metrics, dashboards").default(7112),
  PROVISIONING_URL: url(
    `http://host:port of IaCProvisioningService, which sizes elastic pools; unset: ${LOCAL_PROVISIONING}`,
    ["http", "https"],
  ).default(LOCAL_PROVISIONING),
});

export type Settings = Readonly<z.output<typeof settings>>;
