import type { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { Peer } from "@runtime-cloud/eventing/peer";
import type { ServiceContext } from "@runtime-cloud/eventing/service-context";
import type { Unit } from "@runtime-cloud/eventing/unit-of-work";
import type { Prisma, PrismaClient } from "../generated/prisma/client.ts";
import type { Settings } from "./settings.ts";

export type Context = ServiceContext<PrismaClient, Settings> & { provisioning: Provisioning };

/** The service that sizes elastic pools. */
export type Provisioning = Peer<typeof IaCProvisioningService>;

export type Tx = Prisma.TransactionClient;

export type ServiceUnit = Unit<Tx>;

/** The part of the context that wakes the service up. */
export type Wakes = Pick<Context, "arm">;
