import type { IaCProvisioningService } from "@runtime-cloud/contracts/runtimecloud/provisioning/v1/iac_provisioning_service_pb";
import type { Peer } from "@runtime-cloud/eventing/peer";
import type { ServiceContext } from "@runtime-cloud/eventing/service-context";
import type { Unit } from "@runtime-cloud/eventing/unit-of-work";
import type { Prisma, PrismaClient } from "../generated/prisma/client.ts";
import type { LeaseNews } from "./leases/lease-news.ts";
import type { Settings } from "./settings.ts";

export type Context = ServiceContext<PrismaClient, Settings> & {
  provisioning: Provisioning;
  news: LeaseNews;
};

/** The service that sizes elastic pools. */
export type Provisioning = Peer<typeof IaCProvisioningService>;

export type Tx = Prisma.TransactionClient;

export type ServiceUnit = Unit<Tx>;

/** Who is told of what was committed: those who follow leases, and the queue of the deadlines. */
export type Told = Pick<Context, "arm" | "news">;
