import { port, sharedSettings, url } from "@runtime-cloud/service-kit/settings";
import type { z } from "zod";

export const settings = sharedSettings.safeExtend({
  PORT: port("the port of the API: Connect, gRPC and gRPC-Web").default(7102),
  ADMIN_PORT: port("the port of the admin server: health, metrics, dashboards").default(7112),
  PROVISIONING_URL: url("http://host:port of IaCProvisioningService, which sizes elastic pools", [
    "http",
    "https",
  ]).default("http://127.0.0.1:7101"),
});

export type Settings = Readonly<z.output<typeof settings>>;
