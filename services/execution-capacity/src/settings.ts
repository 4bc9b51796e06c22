import { port, sharedSettings, url, wholeNumber } from "@runtime-cloud/service-kit/settings";
import type { z } from "zod";

/** On one machine, at the port that IaCProvisioningService takes by itself. */
const LOCAL_PROVISIONING = "http://127.0.0.1:7101";

const MAX_RETENTION_HOURS = 8_760;
const MAX_RETENTION_DAYS = 3_650;

export const settings = sharedSettings.safeExtend({
  PORT: port("the port of the API: Connect, gRPC and gRPC-Web").default(7102),
  ADMIN_PORT: port("the port of the admin server: health, metrics, dashboards").default(7112),
  PROVISIONING_URL: url(
    `http://host:port of IaCProvisioningService, which sizes elastic pools; unset: ${LOCAL_PROVISIONING}`,
    ["http", "https"],
  ).default(LOCAL_PROVISIONING),
  LEASE_RETENTION_HOURS: wholeNumber(
    "how many hours an ended lease stays among the live ones; after that it is kept apart, and found all the same",
    { min: 1, max: MAX_RETENTION_HOURS },
  ).default(24),
  PAST_LEASE_DAYS: wholeNumber("how many days an ended lease, and that its holder has ended, is known; 0: for ever", {
    min: 0,
    max: MAX_RETENTION_DAYS,
  }).default(30),
});

export type Settings = Readonly<z.output<typeof settings>>;
