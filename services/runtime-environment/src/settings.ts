import { port, sharedSettings, url, wholeNumber } from "@runtime-cloud/service-kit/settings";
import type { z } from "zod";

const DAY_SECONDS = 86_400;
/** On one machine, at the port that IaCProvisioningService takes by itself. */
const LOCAL_PROVISIONING = "http://127.0.0.1:7101";

export const settings = sharedSettings
  .safeExtend({
    PORT: port("the port of the API: Connect, gRPC and gRPC-Web").default(7103),
    ADMIN_PORT: port("the port of the admin server: health, metrics, dashboards").default(7113),
    PROVISIONING_URL: url(`where IaCProvisioningService answers; unset: ${LOCAL_PROVISIONING}`, [
      "http",
      "https",
    ]).default(LOCAL_PROVISIONING),
    OBSERVE_EVERY_SECONDS: wholeNumber("how often a new environment is observed", { min: 5, max: DAY_SECONDS }).default(
      60,
    ),
    STALE_AFTER_SECONDS: wholeNumber("how long a new environment's last observation counts as fresh", {
      min: 10,
      max: 7 * DAY_SECONDS,
    }).default(300),
    PROPOSE_AFTER_SECONDS: wholeNumber(
      "how long a finding of a new environment is open before a proposal is made by itself; unset: never",
      { min: 0, max: DAY_SECONDS },
    ).optional(),
    PROPOSAL_EXPIRES_SECONDS: wholeNumber("how long a proposal waits for its decision", {
      min: 60,
      max: 30 * DAY_SECONDS,
    }).default(DAY_SECONDS),
  })
  .refine((given) => given.STALE_AFTER_SECONDS > given.OBSERVE_EVERY_SECONDS, {
    path: ["STALE_AFTER_SECONDS"],
    error: "is not longer than OBSERVE_EVERY_SECONDS: every environment would be stale between two looks",
  });

export type Settings = Readonly<z.output<typeof settings>>;
