import type { UnitContext } from "@runtime-cloud/eventing/unit-of-work";
import { systemClock } from "@runtime-cloud/service-kit/clock";
import { type Database, openDatabase } from "@runtime-cloud/service-kit/database";
import { uuidv7 } from "@runtime-cloud/service-kit/ids";
import { silentLogger } from "@runtime-cloud/service-kit/logger";
import { type Prisma, PrismaClient } from "../../services/execution-capacity/generated/prisma/client.ts";
import { testDatabase } from "../_support/database.ts";

export type Tx = Prisma.TransactionClient;

/** A real service's database, ExecutionCapacityService's, for tests of what all services share. */
export interface ServiceDatabase extends Database<PrismaClient> {
  url: string;
  context: UnitContext<Tx>;
}

export async function openServiceDatabase(): Promise<ServiceDatabase> {
  const own = await testDatabase("execution-capacity");
  const database = openDatabase(
    { url: own.url, applicationName: "test", onError: () => undefined },
    (adapter) => new PrismaClient({ adapter }),
  );
  return {
    ...database,
    url: own.url,
    context: { client: database.client, clock: systemClock, newId: uuidv7, logger: silentLogger() },
    async close() {
      await database.close();
      await own.drop();
    },
  };
}
