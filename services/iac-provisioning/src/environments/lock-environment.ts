import { NotFound } from "@runtime-cloud/service-kit/errors";
import type { Environment } from "../../generated/prisma/client.ts";
import type { Tx } from "../context.ts";

/**
 * Locks an environment's row until the transaction ends: whatever numbers its versions or orders its runs comes one
 * after the other. Always the first lock that is taken. Throws NotFound.
 */
export async function lockEnvironment(tx: Tx, tenantId: string, environmentId: string): Promise<Environment> {
  await tx.$queryRaw`SELECT FROM environment WHERE id = ${environmentId} AND tenant_id = ${tenantId} FOR UPDATE`;
  const environment = await tx.environment.findFirst({ where: { id: environmentId, tenantId } });
  if (environment) return environment;
  throw unknownEnvironment(environmentId);
}

export function unknownEnvironment(environmentId: string): NotFound {
  return new NotFound(`environment ${environmentId} isn't known here; it arrives with EnvironmentCreated`);
}
