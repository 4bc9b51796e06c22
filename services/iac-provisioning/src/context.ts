import type { ServiceContext } from "@runtime-cloud/eventing/service-context";
import type { Unit } from "@runtime-cloud/eventing/unit-of-work";
import type { Prisma, PrismaClient } from "../generated/prisma/client.ts";
import type { Engine, EngineName } from "./engines/engine.ts";
import type { Settings } from "./settings.ts";
import type { SecretBox } from "./state/secret-box.ts";
import type { StateCredentials } from "./state/state-credentials.ts";
import type { StateStore } from "./state/state-store.ts";

/** What everything in this service works with. */
export interface Context extends ServiceContext<PrismaClient, Settings> {
  engines: Readonly<Record<EngineName, Engine>>;
  box: SecretBox;
  states: StateStore;
  credentials: StateCredentials;
  /** Where engines reach the state backend. */
  stateAddress: string;
  /** This process among the executors. */
  executorId: string;
}

export type Tx = Prisma.TransactionClient;
export type ServiceUnit = Unit<Tx>;
