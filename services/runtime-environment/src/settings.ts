import { choice, port, sharedSettings, text, url, wholeNumber } from "@runtime-cloud/service-kit/settings";
import type { z } from "zod";

const DAY_SECONDS = 86_400;
const MAX_RETENTION_DAYS = 3_650;
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
    OBSERVE_CONCURRENCY: wholeNumber("how many environments one process looks at side by side", {
      min: 1,
      max: 200,
    }).default(16),
    STALE_AFTER_SECONDS: wholeNumber("how long a new environment's last observation counts as fresh", {
      min: 10,
      max: 7 * DAY_SECONDS,
    }).default(300),
    PROPOSE_AFTER_SECONDS: wholeNumber(
      "how long nothing of a new environment's drift changes before a proposal is made by itself; unset: never",
      { min: 0, max: DAY_SECONDS },
    ).optional(),
    PROPOSE_AFTER_SECONDS_DEVELOPMENT: proposeAfter("DEVELOPMENT"),
    PROPOSE_AFTER_SECONDS_TEST: proposeAfter("TEST"),
    PROPOSE_AFTER_SECONDS_STAGING: proposeAfter("STAGING"),
    PROPOSE_AFTER_SECONDS_PRODUCTION: proposeAfter("PRODUCTION"),
    PROPOSAL_EXPIRES_SECONDS: wholeNumber("how long a proposal waits for its decision", {
      min: 60,
      max: 30 * DAY_SECONDS,
    }).default(DAY_SECONDS),
    HTTP_OBSERVER_LOOPBACK: choice("whether components at this machine's own addresses are asked for their health", [
      "allow",
      "deny",
    ]).default("deny"),
    CLUSTERS_DIR: text(
      "a folder of kubeconfigs, `<cluster>.kubeconfig` or `<cluster>.yaml`, that environments may name; those in its folder `<tenantId>` are that tenant's alone; unset: none",
    ).optional(),
    CHANGE_RETENTION_DAYS: wholeNumber(
      "how many days the changes of an environment are kept for ListInventoryChanges and WatchEnvironment, the newest 10000 of each",
      { min: 1, max: MAX_RETENTION_DAYS },
    ).default(30),
  })
  .refine((given) => given.STALE_AFTER_SECONDS > given.OBSERVE_EVERY_SECONDS, {
    path: ["STALE_AFTER_SECONDS"],
    error: "is not longer than OBSERVE_EVERY_SECONDS: every environment would be stale between two looks",
  });

export type Settings = Readonly<z.output<typeof settings>>;

function proposeAfter(environmentClass: string) {
  return wholeNumber(`PROPOSE_AFTER_SECONDS for environments of class ${environmentClass}`, {
    min: 0,
    max: DAY_SECONDS,
  }).optional();
}
