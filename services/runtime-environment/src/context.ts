import type { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { Peer } from "@runtime-cloud/eventing/peer";
import type { ServiceContext } from "@runtime-cloud/eventing/service-context";
import type { Unit } from "@runtime-cloud/eventing/unit-of-work";
import type { Prisma, PrismaClient } from "../generated/prisma/client.ts";
import type { ObservationMeasures } from "./observing/observation-metrics.ts";
import type { KubernetesAccess } from "./observers/kubernetes/kubernetes-access.ts";
import type { Settings } from "./settings.ts";

export type Context = ServiceContext<PrismaClient, Settings> & {
  provisioning: Provisioning;
  /** The way to clusters that environments run in. */
  kubernetes: KubernetesAccess;
  measures: ObservationMeasures;
};
export type Provisioning = Peer<typeof IaCProvisioningService>;
export type Tx = Prisma.TransactionClient;
export type ServiceUnit = Unit<Tx>;
