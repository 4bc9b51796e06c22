import type { ServiceContext } from "@runtime-cloud/eventing/service-context";
import type { Unit } from "@runtime-cloud/eventing/unit-of-work";
import type { Prisma, PrismaClient } from "../generated/prisma/client.ts";
import type { ProvisioningClient } from "./provisioning-client.ts";
import type { Settings } from "./settings.ts";

export type Context = ServiceContext<PrismaClient, Settings> & { provisioning: ProvisioningClient };

export type Tx = Prisma.TransactionClient;

export type ServiceUnit = Unit<Tx>;

/** The part of the context that wakes the service up. */
export type Wakes = Pick<Context, "arm">;
